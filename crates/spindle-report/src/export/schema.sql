-- Results of Spindle's runs, version 2 of the schema: what `spindle export --to` makes, described in docs/export.md.

create table schema_version (version integer not null);
insert into schema_version values (2);

-- A machine with its settings, as runs found it.
create table machines (
    machine text primary key,
    host text,
    distribution text,
    kernel_release text,
    processor text,
    memory_bytes bigint,
    facts jsonb not null
);

create table runs (
    run text primary key,
    machine text not null references machines,
    experiment text not null,
    workload text not null,
    started_at timestamptz not null,
    is_finished boolean not null,
    spindle_version text,
    directory text not null,
    headline text not null,
    settings jsonb not null
);
create index runs_by_time on runs (experiment, started_at);

create table cases (
    run text not null references runs on delete cascade,
    layout text not null,
    clients integer not null,
    rate text not null,
    status text not null,
    reason text,
    path text,
    caching text,
    method text,
    engine text,
    description text,
    keeps text not null,
    price_per_month numeric(18, 2),
    currency text,
    trials integer not null,
    tpm double precision,
    tpm_low double precision,
    tpm_high double precision,
    latency_p50_us double precision,
    latency_p95_us double precision,
    latency_p99_us double precision,
    capacity_per_s double precision,
    primary key (run, layout, clients, rate)
);

create table trials (
    run text not null,
    layout text not null,
    clients integer not null,
    rate text not null,
    round integer not null,
    position integer,
    tpm double precision,
    nopm double precision,
    transactions bigint,
    retries bigint,
    deadlocks bigint,
    errors bigint,
    reconnects bigint,
    measured_s double precision,
    read_iops double precision,
    write_iops double precision,
    kib_per_s double precision,
    latency_p50_us double precision,
    latency_p95_us double precision,
    latency_p99_us double precision,
    latency_max_us double precision,
    latency_mean_us double precision,
    cpu_user_percent double precision,
    cpu_system_percent double precision,
    cpu_iowait_percent double precision,
    cpu_idle_percent double precision,
    cpu_user_us_per_transaction double precision,
    cpu_system_us_per_transaction double precision,
    instance_bytes bigint,
    session_bytes bigint,
    program_read_bytes bigint,
    program_write_bytes bigint,
    device_read_bytes bigint,
    device_write_bytes bigint,
    page_cache_share double precision,
    warm_up_s double precision,
    rate_per_s double precision,
    capacity_per_s double precision,
    begin_delay_p99_us double precision,
    backlog bigint,
    response_time_mean_us double precision,
    temporary_bytes double precision,
    keeps text not null,
    primary key (run, layout, clients, rate, round),
    foreign key (run, layout, clients, rate) references cases on delete cascade
);

create table waits (
    run text not null,
    layout text not null,
    clients integer not null,
    rate text not null,
    round integer not null,
    event text not null,
    count bigint not null,
    total_us double precision not null,
    primary key (run, layout, clients, rate, round, event),
    foreign key (run, layout, clients, rate, round) references trials on delete cascade
);

-- Throughput over the measured time of a trial, summed up.
create table series (
    run text not null,
    layout text not null,
    clients integer not null,
    rate text not null,
    round integer not null,
    interval_ms bigint not null,
    samples integer not null,
    tps_mean double precision,
    tps_deviation double precision,
    tps_min double precision,
    tps_max double precision,
    primary key (run, layout, clients, rate, round),
    foreign key (run, layout, clients, rate, round) references trials on delete cascade
);

create table verdicts (
    run text not null references runs on delete cascade,
    clients integer not null,
    rate text not null,
    a text not null,
    b text not null,
    verdict text not null,
    ratio double precision not null,
    ratio_low double precision,
    ratio_high double precision,
    rounds integer not null,
    p_value double precision,
    primary key (run, clients, rate, a, b)
);

create table findings (
    run text not null references runs on delete cascade,
    number integer not null,
    kind text not null,
    layouts text[] not null,
    clients integer[] not null,
    finding text not null,
    remedy text not null,
    primary key (run, number)
);

create table warnings (
    run text not null references runs on delete cascade,
    number integer not null,
    warning text not null,
    primary key (run, number)
);
