select * from tiny;
