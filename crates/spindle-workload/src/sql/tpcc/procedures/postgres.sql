-- TPC-C's transactions as procedures of PostgreSQL, from version 11 on. A call outside of a transaction is one, and commits.
-- The last parameter is the answer.

create procedure tpcc_new_order(
    p_warehouse integer, p_district integer, p_customer integer, p_count integer, p_lines text,
    p_client integer, p_number bigint, inout answer numeric)
language plpgsql as $body$
declare
    v_discount numeric;
    v_warehouse_tax numeric;
    v_district_tax numeric;
    v_order integer;
    v_item integer;
    v_supply integer;
    v_quantity integer;
    v_price numeric;
    v_text char(24);
    v_all_local integer := 1;
begin
    for n in 1 .. p_count loop
        if substr(p_lines, 13 * n - 6, 5)::integer <> p_warehouse then
            v_all_local := 0;
        end if;
    end loop;
    select c_discount, w_tax into v_discount, v_warehouse_tax
        from customer join warehouse on w_id = c_w_id
        where c_w_id = p_warehouse and c_d_id = p_district and c_id = p_customer;
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = p_warehouse and d_id = p_district
        returning d_next_o_id - 1, d_tax into v_order, v_district_tax;
    insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local, o_client, o_number)
        values (p_warehouse, p_district, v_order, p_customer, current_timestamp, p_count, v_all_local, p_client, p_number);
    insert into new_order (no_w_id, no_d_id, no_o_id) values (p_warehouse, p_district, v_order);
    answer := 0;
    for n in 1 .. p_count loop
        v_item := substr(p_lines, 13 * n - 12, 6)::integer;
        v_supply := substr(p_lines, 13 * n - 6, 5)::integer;
        v_quantity := substr(p_lines, 13 * n - 1, 2)::integer;
        select i_price into v_price from item where i_id = v_item;
        if not found then
            rollback;
            answer := null;
            return;
        end if;
        update stock set
            s_quantity = case when s_quantity - v_quantity < 10 then s_quantity - v_quantity + 91
                else s_quantity - v_quantity end,
            s_ytd = s_ytd + v_quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + case when v_supply = p_warehouse then 0 else 1 end
            where s_w_id = v_supply and s_i_id = v_item
            returning case p_district when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03
                when 4 then s_dist_04 when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07
                when 8 then s_dist_08 when 9 then s_dist_09 else s_dist_10 end into v_text;
        insert into order_line
            (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
            values (p_warehouse, p_district, v_order, n, v_item, v_supply, v_quantity, v_quantity * v_price, v_text);
        answer := answer + v_quantity * v_price;
    end loop;
    answer := answer * (1 - v_discount) * (1 + v_warehouse_tax + v_district_tax);
end
$body$;

create procedure tpcc_payment(
    p_warehouse integer, p_district integer, p_customer_warehouse integer, p_customer_district integer,
    p_customer integer, p_last_name text, p_amount numeric, p_client integer, p_number bigint, inout answer numeric)
language plpgsql as $body$
declare
    v_customer integer := p_customer;
    v_names bigint;
    v_district_name text;
    v_warehouse_name text;
begin
    if v_customer = 0 then
        select count(*) into v_names from customer
            where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_last = p_last_name;
        select c_id into v_customer from customer
            where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_last = p_last_name
            order by c_first offset (v_names + 1) / 2 - 1 limit 1;
    end if;
    update customer set
        c_balance = c_balance - p_amount,
        c_ytd_payment = c_ytd_payment + p_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = case when c_credit = 'BC' then left(concat_ws(' ', v_customer, p_customer_district,
            p_customer_warehouse, p_district, p_warehouse, p_amount, '| ') || c_data, 500) else c_data end
        where c_w_id = p_customer_warehouse and c_d_id = p_customer_district and c_id = v_customer
        returning c_balance into answer;
    update district set d_ytd = d_ytd + p_amount where d_w_id = p_warehouse and d_id = p_district
        returning d_name into v_district_name;
    update warehouse set w_ytd = w_ytd + p_amount where w_id = p_warehouse
        returning w_name into v_warehouse_name;
    insert into history
        (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data, h_client, h_number)
        values (v_customer, p_customer_district, p_customer_warehouse, p_district, p_warehouse, current_timestamp,
            p_amount, v_warehouse_name || '    ' || v_district_name, p_client, p_number);
end
$body$;

create procedure tpcc_order_status(
    p_warehouse integer, p_district integer, p_customer integer, p_last_name text, inout answer text)
language plpgsql as $body$
declare
    v_customer integer := p_customer;
    v_names bigint;
    v_order integer;
begin
    if v_customer = 0 then
        select count(*) into v_names from customer
            where c_w_id = p_warehouse and c_d_id = p_district and c_last = p_last_name;
        select c_id into v_customer from customer
            where c_w_id = p_warehouse and c_d_id = p_district and c_last = p_last_name
            order by c_first offset (v_names + 1) / 2 - 1 limit 1;
    end if;
    select o_id into v_order from orders
        where o_w_id = p_warehouse and o_d_id = p_district and o_c_id = v_customer
        order by o_id desc limit 1;
    select string_agg(concat_ws(' ', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d), E'\n') into answer
        from order_line where ol_w_id = p_warehouse and ol_d_id = p_district and ol_o_id = v_order;
end
$body$;

create procedure tpcc_delivery(p_warehouse integer, p_carrier integer, inout answer integer)
language plpgsql as $body$
declare
    v_order integer;
    v_customer integer;
    v_amount numeric;
begin
    answer := 0;
    for v_district in 1 .. 10 loop
        loop
            select no_o_id into v_order from new_order
                where no_w_id = p_warehouse and no_d_id = v_district order by no_o_id limit 1;
            exit when v_order is null;
            delete from new_order where no_w_id = p_warehouse and no_d_id = v_district and no_o_id = v_order;
            -- Another delivery may have taken it meanwhile.
            exit when found;
        end loop;
        continue when v_order is null;
        update orders set o_carrier_id = p_carrier
            where o_w_id = p_warehouse and o_d_id = v_district and o_id = v_order
            returning o_c_id into v_customer;
        update order_line set ol_delivery_d = current_timestamp
            where ol_w_id = p_warehouse and ol_d_id = v_district and ol_o_id = v_order;
        select sum(ol_amount) into v_amount from order_line
            where ol_w_id = p_warehouse and ol_d_id = v_district and ol_o_id = v_order;
        update customer set c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
            where c_w_id = p_warehouse and c_d_id = v_district and c_id = v_customer;
        answer := answer + 1;
    end loop;
end
$body$;

create procedure tpcc_stock_level(p_warehouse integer, p_district integer, p_threshold integer, inout answer bigint)
language plpgsql as $body$
declare
    v_next integer;
begin
    select d_next_o_id into v_next from district where d_w_id = p_warehouse and d_id = p_district;
    select count(distinct s_i_id) into answer from order_line join stock on s_w_id = p_warehouse and s_i_id = ol_i_id
        where ol_w_id = p_warehouse and ol_d_id = p_district and ol_o_id >= v_next - 20 and ol_o_id < v_next
        and s_quantity < p_threshold;
end
$body$;
