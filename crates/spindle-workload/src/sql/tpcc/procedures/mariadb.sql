-- TPC-C's transactions as procedures of MariaDB and MySQL. Each ends with the answer, selected.

create procedure tpcc_new_order(
    p_warehouse integer, p_district integer, p_customer integer, p_count integer, p_lines varchar(195),
    p_client integer, p_number bigint)
begin
    declare n integer default 1;
    declare v_all_local integer default 1;
    declare v_discount, v_warehouse_tax, v_district_tax numeric(4, 4);
    declare v_order, v_item, v_supply, v_quantity, v_remote, v_stock integer;
    declare v_price numeric(5, 2);
    declare v_total numeric(14, 4) default 0;
    declare v_text char(24);
    while n <= p_count do
        if cast(substr(p_lines, 13 * n - 6, 5) as signed) <> p_warehouse then
            set v_all_local = 0;
        end if;
        set n = n + 1;
    end while;
    start transaction;
    select c_discount, w_tax into v_discount, v_warehouse_tax
        from customer join warehouse on w_id = c_w_id
        where c_w_id = p_warehouse and c_d_id = p_district and c_id = p_customer;
    select d_next_o_id, d_tax into v_order, v_district_tax
        from district where d_w_id = p_warehouse and d_id = p_district for update;
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = p_warehouse and d_id = p_district;
    insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local, o_client, o_number)
        values (p_warehouse, p_district, v_order, p_customer, current_timestamp, p_count, v_all_local, p_client, p_number);
    insert into new_order (no_w_id, no_d_id, no_o_id) values (p_warehouse, p_district, v_order);
    set n = 1;
    while n <= p_count do
        set v_item = cast(substr(p_lines, 13 * n - 12, 6) as signed);
        set v_supply = cast(substr(p_lines, 13 * n - 6, 5) as signed);
        set v_quantity = cast(substr(p_lines, 13 * n - 1, 2) as signed);
        set v_remote = v_supply <> p_warehouse;
        set v_price = (select i_price from item where i_id = v_item);
        if v_price is null then
            rollback;
            set v_total = null;
            set n = p_count + 1;
        else
            select s_quantity, case p_district when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03
                when 4 then s_dist_04 when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07
                when 8 then s_dist_08 when 9 then s_dist_09 else s_dist_10 end into v_stock, v_text
                from stock where s_w_id = v_supply and s_i_id = v_item for update;
            set v_stock = v_stock - v_quantity;
            if v_stock < 10 then
                set v_stock = v_stock + 91;
            end if;
            update stock set s_quantity = v_stock, s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + v_remote
                where s_w_id = v_supply and s_i_id = v_item;
            insert into order_line
                (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
                values (p_warehouse, p_district, v_order, n, v_item, v_supply, v_quantity, v_quantity * v_price, v_text);
            set v_total = v_total + v_quantity * v_price;
            set n = n + 1;
        end if;
    end while;
    commit;
    select v_total * (1 - v_discount) * (1 + v_warehouse_tax + v_district_tax) as answer;
end;

create procedure tpcc_payment(
    p_warehouse integer, p_district integer, p_customer_warehouse integer, p_customer_district integer,
    p_customer integer, p_last_name varchar(16), p_amount numeric(6, 2), p_client integer, p_number bigint)
begin
    declare v_customer integer default p_customer;
    declare v_names, v_skipped integer;
    declare v_district_name, v_warehouse_name varchar(10);
    start transaction;
    if v_customer = 0 then
        select count(*) into v_names from customer
            where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_last = p_last_name;
        set v_skipped = (v_names + 1) div 2 - 1;
        select c_id into v_customer from customer
            where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_last = p_last_name
            order by c_first limit v_skipped, 1;
    end if;
    update customer set
        c_balance = c_balance - p_amount,
        c_ytd_payment = c_ytd_payment + p_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = if(c_credit = 'BC', left(concat(concat_ws(' ', v_customer, p_customer_district, p_customer_warehouse,
            p_district, p_warehouse, p_amount, '| '), c_data), 500), c_data)
        where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_id = v_customer;
    update district set d_ytd = d_ytd + p_amount where d_w_id = p_warehouse and d_id = p_district;
    select d_name into v_district_name from district where d_w_id = p_warehouse and d_id = p_district;
    update warehouse set w_ytd = w_ytd + p_amount where w_id = p_warehouse;
    select w_name into v_warehouse_name from warehouse where w_id = p_warehouse;
    insert into history
        (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data, h_client, h_number)
        values (v_customer, p_customer_district, p_customer_warehouse, p_district, p_warehouse, current_timestamp,
            p_amount, concat(v_warehouse_name, '    ', v_district_name), p_client, p_number);
    commit;
    select c_balance from customer
        where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_id = v_customer;
end;

create procedure tpcc_order_status(
    p_warehouse integer, p_district integer, p_customer integer, p_last_name varchar(16))
begin
    declare v_customer integer default p_customer;
    declare v_names, v_skipped, v_order integer;
    start transaction;
    if v_customer = 0 then
        select count(*) into v_names from customer
            where c_w_id = p_warehouse and c_d_id = p_district and c_last = p_last_name;
        set v_skipped = (v_names + 1) div 2 - 1;
        select c_id into v_customer from customer
            where c_w_id = p_warehouse and c_d_id = p_district and c_last = p_last_name
            order by c_first limit v_skipped, 1;
    end if;
    select o_id into v_order from orders
        where o_w_id = p_warehouse and o_d_id = p_district and o_c_id = v_customer
        order by o_id desc limit 1;
    select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
        from order_line where ol_w_id = p_warehouse and ol_d_id = p_district and ol_o_id = v_order;
    commit;
end;

create procedure tpcc_delivery(p_warehouse integer, p_carrier integer)
begin
    declare v_district integer default 1;
    declare v_delivered integer default 0;
    declare v_order, v_customer integer;
    declare v_amount numeric(12, 2);
    start transaction;
    while v_district <= 10 do
        set v_order = null;
        select no_o_id into v_order from new_order
            where no_w_id = p_warehouse and no_d_id = v_district order by no_o_id limit 1 for update;
        if v_order is not null then
            delete from new_order where no_w_id = p_warehouse and no_d_id = v_district and no_o_id = v_order;
            update orders set o_carrier_id = p_carrier
                where o_w_id = p_warehouse and o_d_id = v_district and o_id = v_order;
            select o_c_id into v_customer from orders
                where o_w_id = p_warehouse and o_d_id = v_district and o_id = v_order;
            update order_line set ol_delivery_d = current_timestamp
                where ol_w_id = p_warehouse and ol_d_id = v_district and ol_o_id = v_order;
            select sum(ol_amount) into v_amount from order_line
                where ol_w_id = p_warehouse and ol_d_id = v_district and ol_o_id = v_order;
            update customer set c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
                where c_w_id = p_warehouse and c_d_id = v_district and c_id = v_customer;
            set v_delivered = v_delivered + 1;
        end if;
        set v_district = v_district + 1;
    end while;
    commit;
    select v_delivered as answer;
end;

create procedure tpcc_stock_level(p_warehouse integer, p_district integer, p_threshold integer)
begin
    declare v_next integer;
    select d_next_o_id into v_next from district where d_w_id = p_warehouse and d_id = p_district;
    select count(distinct s_i_id) from order_line join stock on s_w_id = p_warehouse and s_i_id = ol_i_id
        where ol_w_id = p_warehouse and ol_d_id = p_district and ol_o_id >= v_next - 20 and ol_o_id < v_next
        and s_quantity < p_threshold;
end;
