select distinct col_signed from tenpct;
