"""Customers, orders and lines as in TPC-H, made here: its columns and ranges, but a few customers order very much.

Bounds are declared as a DBA would who knows the columns, and wants nearly all rows of a customer to count.
"""

from rules.policy.load import load_policy
from rules.policy.model import Policy
from tests.planner.tpch import Question

SCHEMA = """
CREATE TABLE region (r_regionkey integer PRIMARY KEY, r_name text NOT NULL);
CREATE TABLE nation (n_nationkey integer PRIMARY KEY, n_name text NOT NULL, n_regionkey integer NOT NULL);
CREATE TABLE supplier (s_suppkey integer PRIMARY KEY, s_nationkey integer NOT NULL);
CREATE TABLE customer (c_custkey integer PRIMARY KEY, c_nationkey integer NOT NULL);
CREATE TABLE orders (
    o_orderkey integer PRIMARY KEY, o_custkey integer NOT NULL REFERENCES customer,
    o_orderdate date NOT NULL, o_orderpriority text NOT NULL
);
CREATE TABLE lineitem (
    l_orderkey integer NOT NULL REFERENCES orders, l_linenumber integer NOT NULL, l_suppkey integer NOT NULL,
    l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
    l_returnflag text NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
    l_shipmode text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)
);
"""

# A third of the customers never ordered; the others' orders follow a Pareto law with a mean of 12 and a long tail.
DATA = """
SELECT setseed(0.42);
INSERT INTO region SELECT k - 1, name
FROM unnest(ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']) WITH ORDINALITY AS r(name, k);
INSERT INTO nation SELECT k, 'NATION ' || k, k % 5 FROM generate_series(0, 24) AS k;
INSERT INTO supplier SELECT k, (random() * 24.999)::integer FROM generate_series(1, CUSTOMERS / 15) AS k;
INSERT INTO customer SELECT k, floor(random() * 25) FROM generate_series(1, CUSTOMERS) AS k;
INSERT INTO orders SELECT row_number() OVER (), c_custkey, '1992-01-01'::date + floor(random() * 2405)::integer,
    (ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[1 + floor(random() * 5)]
FROM (SELECT c_custkey, least(400, floor(5 / random() ^ 0.6))::integer AS n FROM customer
    WHERE c_custkey % 3 <> 0 OFFSET 0) AS c, generate_series(1, n) AS k;
INSERT INTO lineitem SELECT o_orderkey, k, 1 + floor(random() * (CUSTOMERS / 15)), q, q * p, d,
    (ARRAY['A', 'N', 'N', 'R'])[1 + floor(random() * 4)], ship, o_orderdate + 30 + floor(random() * 61)::integer,
    ship + 1 + floor(random() * 30)::integer,
    (ARRAY['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'])[1 + floor(random() * 7)]
FROM (SELECT o_orderkey, o_orderdate, 1 + floor(random() * 7)::integer AS n FROM orders OFFSET 0) AS o,
    LATERAL (SELECT k, 1 + floor(random() * 50)::integer AS q, round((900 + random() * 1200)::numeric, 2) AS p,
        floor(random() * 11)::numeric / 100 AS d, o_orderdate + 1 + floor(random() * 121)::integer AS ship
        FROM generate_series(1, n) AS k) AS l;
ANALYZE;
"""

RULES = """
database: ${NOISEGATE_DATABASE}
unit: customer.c_custkey
tables:
  region: public
  nation: public
  supplier: public
  customer:
    unit: c_custkey
    columns:
      c_nationkey: {lower: 0, upper: 24}
  orders:
    unit: o_custkey
    rows_per_unit: 60
  lineitem:
    unit: l_orderkey -> orders.o_orderkey
    rows_per_unit: 240
    columns:
      l_quantity: {lower: 0, upper: 50}
      l_extendedprice: {lower: 0, upper: 105000}
      l_discount: {lower: 0, upper: 0.1}
      l_returnflag: {values: [A, N, R]}
      l_shipmode: {values: [AIR, FOB, MAIL, RAIL, REG AIR, SHIP, TRUCK]}
budget: {epsilon: 1000}
analysts: {ada: {password: "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="}}
"""


QUESTIONS = (
    Question(
        "Q1, lines and prices by flag",
        1,
        "SELECT l_returnflag, count(*), sum(l_quantity), sum(l_extendedprice), avg(l_discount) FROM lineitem "
        "WHERE l_shipdate <= '1998-09-02' GROUP BY l_returnflag",
    ),
    Question(
        "Q4, late orders by priority, as one count",
        0,
        "SELECT count(*) FROM orders AS o WHERE o_orderdate >= '1993-07-01' AND o_orderdate < '1993-10-01' AND EXISTS "
        "(SELECT 1 FROM lineitem WHERE l_orderkey = o.o_orderkey AND l_commitdate < l_receiptdate)",
    ),
    Question(
        "Q5, revenue of local suppliers by nation",
        1,
        "SELECT c_nationkey, sum(l_extendedprice * (1 - l_discount)) "
        "FROM customer, orders, lineitem, supplier, nation, region "
        "WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey "
        "AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey "
        "AND r_name = 'ASIA' AND o_orderdate >= '1994-01-01' AND o_orderdate < '1995-01-01' GROUP BY c_nationkey",
    ),
    Question(
        "Q6, revenue of small discounts",
        0,
        "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= '1994-01-01' "
        "AND l_shipdate < '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
    Question(
        "Q12, late lines by ship mode and priority",
        1,
        "SELECT l_shipmode, "
        "sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), "
        "sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) "
        "FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') "
        "AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= '1994-01-01' AND l_receiptdate < '1995-01-01' GROUP BY l_shipmode",
    ),
)


def script(customers: int) -> str:
    """Tables and rows."""
    return SCHEMA + DATA.replace("CUSTOMERS", str(customers))


def policy() -> Policy:
    """The rules above."""
    return load_policy(RULES, "rules.yaml", {"NOISEGATE_DATABASE": "tpch"})
