select distinct col_address, col_signed from hundred;
