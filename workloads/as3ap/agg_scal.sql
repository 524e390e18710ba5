select min(col_key) from uniques;
