"""A small TPC-H: its eight tables with the customer as the unit, rows of our own making, and questions asked of it.

The questions are TPC-H's own, word for word where the answer is an aggregate over many customers. Where TPC-H lists
single orders or customers (3, 10, 18) the adapted one asks for the groups that these belong to.
"""

from dataclasses import dataclass

from rules.policy.load import load_policy
from rules.policy.model import Policy

SCHEMA = """
CREATE TABLE region (r_regionkey integer PRIMARY KEY, r_name text NOT NULL);
CREATE TABLE nation (
    n_nationkey integer PRIMARY KEY, n_name text NOT NULL, n_regionkey integer NOT NULL REFERENCES region);
CREATE TABLE supplier (
    s_suppkey integer PRIMARY KEY, s_name text NOT NULL, s_nationkey integer NOT NULL REFERENCES nation,
    s_acctbal numeric(15,2) NOT NULL, s_comment text NOT NULL);
CREATE TABLE part (
    p_partkey integer PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL,
    p_type text NOT NULL, p_size integer NOT NULL, p_container text NOT NULL);
CREATE TABLE partsupp (
    ps_partkey integer NOT NULL REFERENCES part, ps_suppkey integer NOT NULL REFERENCES supplier,
    ps_availqty integer NOT NULL, ps_supplycost numeric(15,2) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (
    c_custkey integer PRIMARY KEY, c_name text NOT NULL, c_nationkey integer NOT NULL REFERENCES nation,
    c_phone text NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment text NOT NULL);
CREATE TABLE orders (
    o_orderkey integer PRIMARY KEY, o_custkey integer NOT NULL REFERENCES customer, o_orderstatus text NOT NULL,
    o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL,
    o_shippriority integer NOT NULL, o_comment text NOT NULL);
CREATE TABLE lineitem (
    l_orderkey integer NOT NULL REFERENCES orders, l_partkey integer NOT NULL REFERENCES part,
    l_suppkey integer NOT NULL REFERENCES supplier, l_linenumber integer NOT NULL, l_quantity numeric(15,2) NOT NULL,
    l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL,
    l_returnflag text NOT NULL, l_linestatus text NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber));
"""

# `s` is a fixed shuffle of the row's number, so that columns do not follow each other.
DATA = """
INSERT INTO region SELECT k - 1, name
FROM unnest(ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']) WITH ORDINALITY AS r(name, k);
INSERT INTO nation SELECT k - 1, name, (k - 1) % 5 FROM unnest(ARRAY['KENYA', 'BRAZIL', 'INDIA', 'FRANCE', 'EGYPT',
    'ALGERIA', 'CANADA', 'CHINA', 'GERMANY', 'IRAN']) WITH ORDINALITY AS n(name, k);
INSERT INTO supplier SELECT k, 'Supplier ' || k, k % 10, k * 313 % 9000, CASE WHEN k % 7 = 0 THEN
    'Customer Complaints' ELSE 'fine' END FROM generate_series(1, 20) AS k;
INSERT INTO part SELECT k, (ARRAY['green lace', 'forest mint', 'plum green', 'dim blue'])[1 + k % 4],
    'Manufacturer#' || 1 + k % 3, 'Brand#' || 11 + k % 3, (ARRAY['PROMO BRASS', 'STANDARD TIN',
    'ECONOMY ANODIZED STEEL', 'SMALL BRASS'])[1 + k / 4 % 4], 1 + k % 15,
    (ARRAY['SM CASE', 'MED BAG', 'LG BOX'])[1 + k / 3 % 3]
FROM generate_series(1, 40) AS k;
INSERT INTO partsupp SELECT p, 1 + (p * 3 + n * 7) % 20, 20 + p * n * 17 % 150, 10 + p * n % 90
FROM generate_series(1, 40) AS p, generate_series(0, 2) AS n;
INSERT INTO customer SELECT k, 'Customer ' || k, s % 10, 10 + s % 10 || '-' || s, (s * 37 % 1099998 - 99999) / 100.0,
    (ARRAY['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'])[1 + s % 7 % 5]
FROM (SELECT k, k * 7919 % 10007 AS s FROM generate_series(1, 300) AS k) AS shuffled;
INSERT INTO orders SELECT o, c, (ARRAY['F', 'O', 'P'])[1 + s % 3], 1000 + s % 400000, '1992-01-01'::date + s % 2405,
    (ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[1 + s / 5 % 5], 0,
    CASE WHEN s % 6 = 0 THEN 'special packages, unusual requests' ELSE 'plain' END
FROM (SELECT row_number() OVER (ORDER BY c, n) AS o, c, (c * 7919 + n * 104729) % 1000003 AS s
    FROM generate_series(1, 300) AS c, generate_series(1, c * 37 % 9) AS n) AS shuffled;
INSERT INTO lineitem SELECT o_orderkey, ps_partkey, ps_suppkey, n, q, q * (900 + s % 1200),
    s % 11 / 100.0, s % 9 / 100.0,
    (ARRAY['A', 'N', 'N', 'R'])[1 + s % 4], (ARRAY['F', 'O'])[1 + s / 3 % 2], o_orderdate + 1 + s % 121,
    o_orderdate + 30 + s / 7 % 61, o_orderdate + 2 + s % 121 + s / 11 % 30,
    (ARRAY['DELIVER IN PERSON', 'COLLECT COD'])[1 + s / 2 % 2],
    (ARRAY['AIR', 'AIR REG', 'MAIL', 'RAIL', 'SHIP', 'TRUCK'])[1 + s / 13 % 6]
FROM (SELECT o_orderkey, o_orderdate, n, s, 1 + s / 17 % 50 AS q, 1 + s % 40 AS part, s / 19 % 3 AS which
    FROM (SELECT o_orderkey, o_orderdate, n, (o_orderkey * 7919 + n * 104729) % 1000003 AS s
        FROM orders, generate_series(1, 1 + o_orderkey % 5) AS n) AS numbered) AS shuffled
JOIN partsupp ON ps_partkey = part AND ps_suppkey = 1 + (part * 3 + which * 7) % 20;
"""

RULES = """
database: ${NOISEGATE_DATABASE}
unit: customer.c_custkey
tables:
  region: public
  nation: public
  supplier: public
  part: public
  partsupp: {public: true, columns: {ps_supplycost: {lower: 0, upper: 1000}}}
  customer:
    unit: c_custkey
    columns:
      c_acctbal: {lower: -1000, upper: 10000}
      c_mktsegment: {values: [AUTOMOBILE, BUILDING, FURNITURE, HOUSEHOLD, MACHINERY]}
      c_nationkey: {lower: 0, upper: 24}
  orders:
    unit: o_custkey
    rows_per_unit: 32
    columns:
      o_orderstatus: {values: [F, O, P]}
      o_totalprice: {lower: 0, upper: 600000}
      o_orderdate: {lower: 1992-01-01, upper: 1998-12-31}
      o_orderpriority: {values: [1-URGENT, 2-HIGH, 3-MEDIUM, 4-NOT SPECIFIED, 5-LOW]}
      o_shippriority: {values: [0]}
  lineitem:
    unit: l_orderkey -> orders.o_orderkey
    rows_per_unit: 128
    columns:
      l_suppkey: {lower: 1, upper: 20}
      l_partkey: {lower: 1, upper: 40}
      l_quantity: {lower: 0, upper: 50}
      l_extendedprice: {lower: 0, upper: 105000}
      l_discount: {lower: 0, upper: 0.1}
      l_tax: {lower: 0, upper: 0.08}
      l_returnflag: {values: [A, N, R]}
      l_linestatus: {values: [F, O]}
      l_shipdate: {lower: 1992-01-01, upper: 1999-12-31}
      l_shipmode: {values: [AIR, AIR REG, FOB, MAIL, RAIL, SHIP, TRUCK]}
budget: {epsilon: 1000, delta: 1e-6}
analysts: {ada: {password: "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="}}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A statement; its first `keys` columns say which row it is, the others are numbers."""

    name: str
    keys: int
    sql: str


TPCH = (
    Question(
        "Q1", 2,
        """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
    avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '90' day
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    ),
    Question(
        "Q2, public tables alone", 2,
        """SELECT s_name, p_partkey, s_acctbal FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
    AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
    AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    ),
    Question(
        "Q3, by day instead of by order", 2,
        """SELECT o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
    AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
GROUP BY o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    ),
    Question(
        "Q4", 1,
        """SELECT o_orderpriority, count(*) AS order_count FROM orders
WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-07-01' + interval '3' month
    AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    ),
    Question(
        "Q5", 1,
        """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
    AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
    AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1' year
GROUP BY n_name ORDER BY revenue DESC""",
    ),
    Question(
        "Q6", 0,
        """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year
    AND l_discount BETWEEN .06 - 0.01 AND .06 + 0.01 AND l_quantity < 24""",
    ),
    Question(
        "Q7", 3,
        """SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
        l_extendedprice * (1 - l_discount) AS volume
    FROM supplier, lineitem, orders, customer, nation n1, nation n2
    WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
        AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
        AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
        AND l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31') AS shipping
GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    ),
    Question(
        "Q8", 1,
        """SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
FROM (SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume,
        n2.n_name AS nation
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
        AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
        AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'
        AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
GROUP BY o_year ORDER BY o_year""",
    ),
    Question(
        "Q9", 2,
        """SELECT nation, o_year, sum(amount) AS sum_profit
FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
        AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    ),
    Question(
        "Q10, by nation instead of by customer", 1,
        """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, sum(c_acctbal)
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= date '1993-10-01'
    AND o_orderdate < date '1993-10-01' + interval '3' month AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY n_name ORDER BY revenue DESC LIMIT 20""",
    ),
    Question(
        "Q11, public tables alone", 1,
        """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.01
    FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
ORDER BY value DESC""",
    ),
    Question(
        "Q12", 1,
        """SELECT l_shipmode,
    sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
    sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
    AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
    AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1994-01-01' + interval '1' year
GROUP BY l_shipmode ORDER BY l_shipmode""",
    ),
    Question(
        "Q13", 1,
        """SELECT c_count, count(*) AS custdist
FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN orders
        ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
    GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    ),
    Question(
        "Q14", 0,
        """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
    / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= date '1995-09-01'
    AND l_shipdate < date '1995-09-01' + interval '1' month""",
    ),
    Question(
        "Q15", 2,
        """WITH revenue (supplier_no, total_revenue) AS (
    SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) FROM lineitem
    WHERE l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-01-01' + interval '3' month GROUP BY l_suppkey)
SELECT s_suppkey, s_name, total_revenue FROM supplier, revenue
WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    ),
    Question(
        "Q16, public tables alone", 3,
        """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#12' AND p_type NOT LIKE 'SMALL%' AND p_size IN (2, 4, 5, 9, 14)
    AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    ),
    Question(
        "Q17", 0,
        """SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = 'Brand#13' AND p_container = 'MED BAG'
    AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    ),
    Question(
        "Q18, all large orders instead of a hundred of them", 0,
        """SELECT count(DISTINCT c_custkey), count(DISTINCT o_orderkey), sum(l_quantity) FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 120)
    AND c_custkey = o_custkey AND o_orderkey = l_orderkey""",
    ),
    Question(
        "Q19", 0,
        """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity >= 1
        AND l_quantity <= 1 + 10 AND p_size BETWEEN 1 AND 5 AND l_shipmode IN ('AIR', 'AIR REG')
        AND l_shipinstruct = 'DELIVER IN PERSON')
    OR (p_partkey = l_partkey AND p_brand = 'Brand#13' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity >= 10
        AND l_quantity <= 10 + 10 AND p_size BETWEEN 1 AND 10 AND l_shipmode IN ('AIR', 'AIR REG')
        AND l_shipinstruct = 'DELIVER IN PERSON')
    OR (p_partkey = l_partkey AND p_brand = 'Brand#11' AND p_container IN ('LG CASE', 'LG BOX') AND l_quantity >= 20
        AND l_quantity <= 20 + 10 AND p_size BETWEEN 1 AND 15 AND l_shipmode IN ('AIR', 'AIR REG')
        AND l_shipinstruct = 'DELIVER IN PERSON')""",
    ),
    Question(
        "Q20", 1,
        """SELECT s_name FROM supplier, nation
WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
        WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
            AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= date '1994-01-01'
                    AND l_shipdate < date '1994-01-01' + interval '1' year))
    AND s_nationkey = n_nationkey AND n_name = 'CANADA'
ORDER BY s_name""",
    ),
    Question(
        "Q21", 1,
        """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
    AND l1.l_receiptdate > l1.l_commitdate
    AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
    AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
        AND l3.l_receiptdate > l3.l_commitdate)
    AND s_nationkey = n_nationkey AND n_name = 'EGYPT'
GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    ),
    Question(
        "Q22", 1,
        """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
    WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '11', '10', '19', '15', '18', '17')
        AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00
            AND substring(c_phone FROM 1 FOR 2) IN ('13', '11', '10', '19', '15', '18', '17'))
        AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode ORDER BY cntrycode""",
    ),
)  # fmt: skip

# The questions on which peers were measured: these, and Q1, Q4, Q5, Q6, Q12, Q13 and Q14 above.
EVERYDAY = (
    Question("customers", 0, "SELECT count(*) FROM customer"),
    Question(
        "orders of a year",
        0,
        "SELECT count(*) FROM orders WHERE o_orderdate >= DATE '1995-01-01' AND o_orderdate < DATE '1996-01-01'",
    ),
    Question("a sum", 0, "SELECT sum(c_acctbal) FROM customer"),
    Question("averages by segment", 1, "SELECT c_mktsegment, avg(c_acctbal) FROM customer GROUP BY c_mktsegment"),
    Question(
        "orders by status", 1, "SELECT o_orderstatus, count(*), sum(o_totalprice) FROM orders GROUP BY o_orderstatus"
    ),
    Question("an average", 0, "SELECT avg(o_totalprice) FROM orders"),
    Question("orders by month", 1, "SELECT date_trunc('month', o_orderdate) AS month, count(*) FROM orders GROUP BY 1"),
    Question(
        "customers by nation",
        1,
        "SELECT n.n_name, count(*) FROM customer c JOIN nation n ON c.c_nationkey = n.n_nationkey GROUP BY n.n_name",
    ),
    Question("distinct customers", 0, "SELECT count(DISTINCT o_custkey) FROM orders WHERE o_orderstatus = 'F'"),
    Question(
        "orders by segment",
        1,
        "SELECT c_mktsegment, count(*), sum(o_totalprice) FROM orders, customer WHERE o_custkey = c_custkey GROUP BY 1",
    ),
    Question(
        "lines by priority",
        1,
        "SELECT o_orderpriority, count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY 1",
    ),
    Question(
        "several aggregates",
        0,
        "SELECT count(*), count(DISTINCT o_custkey), sum(o_totalprice), avg(o_totalprice) FROM orders",
    ),
    Question("a sum of products", 0, "SELECT sum(l_extendedprice * (1 - l_discount)) FROM lineitem"),
    Question("a sum of cases", 0, "SELECT sum(CASE WHEN o_orderpriority = '1-URGENT' THEN 1 ELSE 0 END) FROM orders"),
    Question(
        "the two largest segments",
        1,
        "SELECT c_mktsegment, count(*) FROM customer GROUP BY 1 HAVING count(*) > 20 ORDER BY 2 DESC, 1 LIMIT 2",
    ),
    Question("a median", 0, "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY o_totalprice) FROM orders"),
    Question("a spread", 0, "SELECT stddev(c_acctbal) FROM customer"),
    Question(
        "lines by flags",
        2,
        "SELECT l_returnflag, l_linestatus, count(*) FROM lineitem WHERE l_quantity < 25 GROUP BY 1, 2",
    ),
)


def policy() -> Policy:
    """The rules above."""
    return load_policy(RULES, "rules.yaml", {"NOISEGATE_DATABASE": "tpch"})
