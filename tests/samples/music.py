"""A music shop: 59 customers, few invoices of many lines, a public catalogue of tracks."""

SCHEMA = """
CREATE TABLE artist (artist_id integer PRIMARY KEY, name varchar(120));
CREATE TABLE album (album_id integer PRIMARY KEY, title varchar(160) NOT NULL,
    artist_id integer NOT NULL REFERENCES artist);
CREATE TABLE genre (genre_id integer PRIMARY KEY, name varchar(120));
CREATE TABLE media_type (media_type_id integer PRIMARY KEY, name varchar(120));
CREATE TABLE track (
    track_id integer PRIMARY KEY, name varchar(200) NOT NULL, album_id integer REFERENCES album,
    media_type_id integer NOT NULL REFERENCES media_type, genre_id integer REFERENCES genre,
    milliseconds integer NOT NULL, unit_price numeric(10,2) NOT NULL
);
CREATE TABLE employee (
    employee_id integer PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(20) NOT NULL,
    title varchar(30), reports_to integer REFERENCES employee
);
CREATE TABLE customer (
    customer_id integer PRIMARY KEY, first_name varchar(40) NOT NULL, last_name varchar(20) NOT NULL,
    company varchar(80), country varchar(40), support_rep_id integer REFERENCES employee
);
CREATE TABLE invoice (
    invoice_id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customer, invoice_date timestamp NOT NULL,
    billing_country varchar(40), total numeric(10,2) NOT NULL
);
CREATE TABLE invoice_line (
    invoice_line_id integer PRIMARY KEY, invoice_id integer NOT NULL REFERENCES invoice,
    track_id integer NOT NULL REFERENCES track, unit_price numeric(10,2) NOT NULL, quantity integer NOT NULL,
    line_total numeric(10,2) GENERATED ALWAYS AS (unit_price * quantity) STORED,
    CHECK (unit_price >= 0 AND unit_price <= 5), CHECK (quantity BETWEEN 1 AND 10)
);
CREATE FUNCTION worth(price numeric, quantity integer DEFAULT 1) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT price * quantity';
CREATE FUNCTION size_of(total numeric) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$SELECT CASE WHEN $1 < 5 THEN 'small' WHEN $1 < 15 THEN 'middle' ELSE 'large' END;$$;
CREATE FUNCTION net(gross numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT round(worth(gross) / 1.19, 2)';
CREATE FUNCTION is_large(total numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$SELECT size_of(total) = 'large'$$;
CREATE FUNCTION spent_by(customer integer) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT sum(total) FROM invoice WHERE customer_id = customer';
CREATE FUNCTION padded(name char) RETURNS char LANGUAGE sql IMMUTABLE AS 'SELECT name';
CREATE FUNCTION endless(total numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE OR REPLACE FUNCTION endless(total numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT endless(total + 1)';
CREATE FUNCTION upper(total numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT total';
"""

DATA = """
INSERT INTO artist SELECT i, 'Artist ' || i FROM generate_series(1, 25) AS i;
INSERT INTO album SELECT i, 'Album ' || i, 1 + i % 25 FROM generate_series(1, 60) AS i;
INSERT INTO genre SELECT i, (ARRAY['Rock', 'Jazz', 'Metal', 'Latin', 'Pop'])[i] FROM generate_series(1, 5) AS i;
INSERT INTO media_type VALUES (1, 'MPEG'), (2, 'AAC'), (3, 'Video');
INSERT INTO track SELECT i, 'Track ' || i, 1 + i % 60, 1 + i % 3, 1 + i % 7 % 5, 100000 + i * 997 % 300000,
    CASE WHEN i % 3 = 2 THEN 1.99 ELSE 0.99 END FROM generate_series(1, 300) AS i;
INSERT INTO employee VALUES (1, 'Adams', 'Andrew', 'General Manager', NULL), (2, 'Edwards', 'Nancy', 'Manager', 1),
    (3, 'Peacock', 'Jane', 'Agent', 2), (4, 'Park', 'Margaret', 'Agent', 2), (5, 'Johnson', 'Steve', 'Agent', 2);
INSERT INTO customer SELECT i, 'First ' || i, 'Last ' || i, CASE WHEN i % 6 = 0 THEN 'Company ' || i END,
    (ARRAY['USA', 'Canada', 'Brazil', 'France'])[1 + i * i % 4], 3 + i % 3 FROM generate_series(1, 59) AS i;
INSERT INTO invoice SELECT row_number() OVER (ORDER BY c, n), c, timestamp '2009-01-01' + (c * 37 + n * 211) % 1800
    * interval '1 day', (ARRAY['USA', 'Canada', 'Brazil', 'France'])[1 + c * c % 4], 0
FROM generate_series(1, 59) AS c, generate_series(1, 7) AS n;
INSERT INTO invoice_line (invoice_line_id, invoice_id, track_id, unit_price, quantity)
SELECT row_number() OVER (), i.invoice_id, t.track_id, t.unit_price, 1
FROM invoice AS i, generate_series(1, 14) AS n JOIN track AS t ON true
WHERE t.track_id = 1 + (i.invoice_id * 29 + n * 53) % 300 AND n <= 1 + i.invoice_id % 14;
UPDATE invoice AS i SET total = (SELECT sum(line_total) FROM invoice_line AS l WHERE l.invoice_id = i.invoice_id);
ANALYZE;
"""

RULES = """\
database: ${NOISEGATE_DATABASE}
unit: customer.customer_id
tables:
  customer:
    unit: customer_id
    columns:
      country: {values: [USA, Canada, Brazil, France]}
  invoice:
    unit: customer_id
    rows_per_unit: 10
    columns:
      invoice_date: {lower: 2009-01-01, upper: 2013-12-31}
      billing_country: {values: [USA, Canada, Brazil, France]}
      total: {lower: 0, upper: 30}
  invoice_line:
    unit: invoice_id -> invoice.invoice_id
    rows_per_unit: 60
  artist: public
  album: public
  genre: public
  media_type: public
  track: public
  employee: {public: {because: "customers know their agent by name"}}
"""
