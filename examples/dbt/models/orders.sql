-- dbt-duckdb writes an external model as Parquet, which dq reads.
{{ config(materialized='external', location='target/orders.parquet') }}

select order_id, customer, amount, state, placed_at
from {{ ref('raw_orders') }}
where state <> 'lost'
