"""A DVD rental: 600 customers, partitions of payments, films in several categories, enums, two stores."""

SCHEMA = """
CREATE TYPE rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE TABLE country (country_id integer PRIMARY KEY, country text NOT NULL);
CREATE TABLE city (city_id integer PRIMARY KEY, city text NOT NULL, country_id integer NOT NULL REFERENCES country);
CREATE TABLE address (address_id integer PRIMARY KEY, district text, city_id integer NOT NULL REFERENCES city);
CREATE TABLE store (store_id integer PRIMARY KEY, address_id integer NOT NULL REFERENCES address);
CREATE TABLE staff (
    staff_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL,
    store_id integer NOT NULL REFERENCES store
);
CREATE TABLE category (category_id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE film (
    film_id integer PRIMARY KEY, title text NOT NULL, rating rating, rental_rate numeric(4,2) NOT NULL,
    replacement_cost numeric(5,2) NOT NULL, length smallint, release_year integer, fulltext tsvector
);
CREATE TABLE film_category (
    film_id integer NOT NULL REFERENCES film, category_id integer NOT NULL REFERENCES category,
    PRIMARY KEY (film_id, category_id)
);
CREATE TABLE actor (actor_id integer PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL);
CREATE TABLE film_actor (
    actor_id integer NOT NULL REFERENCES actor, film_id integer NOT NULL REFERENCES film,
    PRIMARY KEY (actor_id, film_id)
);
CREATE TABLE inventory (
    inventory_id integer PRIMARY KEY, film_id integer NOT NULL REFERENCES film,
    store_id integer NOT NULL REFERENCES store
);
CREATE TABLE customer (
    customer_id integer PRIMARY KEY, store_id integer NOT NULL REFERENCES store, first_name text NOT NULL,
    last_name text NOT NULL, address_id integer NOT NULL REFERENCES address, activebool boolean NOT NULL,
    create_date date NOT NULL
);
CREATE TABLE rental (
    rental_id integer PRIMARY KEY, rental_date timestamp NOT NULL, inventory_id integer NOT NULL REFERENCES inventory,
    customer_id integer NOT NULL REFERENCES customer, return_date timestamp,
    staff_id integer NOT NULL REFERENCES staff
);
CREATE TABLE payment (
    payment_id integer NOT NULL, customer_id integer NOT NULL, staff_id integer NOT NULL, rental_id integer NOT NULL,
    amount numeric(5,2) NOT NULL, payment_date timestamp NOT NULL, PRIMARY KEY (payment_date, payment_id),
    FOREIGN KEY (customer_id) REFERENCES customer, FOREIGN KEY (staff_id) REFERENCES staff,
    FOREIGN KEY (rental_id) REFERENCES rental
) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_1 PARTITION OF payment FOR VALUES FROM ('2022-01-01') TO ('2022-04-01');
CREATE TABLE payment_2 PARTITION OF payment FOR VALUES FROM ('2022-04-01') TO ('2023-01-01');
"""

DATA = """
INSERT INTO country SELECT i, 'Country ' || i FROM generate_series(1, 12) AS i;
INSERT INTO city SELECT i, 'City ' || i, 1 + i * 7 % 12 FROM generate_series(1, 60) AS i;
INSERT INTO address SELECT i, 'District ' || i % 40, 1 + i * 13 % 60 FROM generate_series(1, 620) AS i;
INSERT INTO store VALUES (1, 601), (2, 602);
INSERT INTO staff VALUES (1, 'Mike', 'Hill', 1), (2, 'Jon', 'Ste', 2), (3, 'Mike', 'Ste', 1);
INSERT INTO category SELECT i, (ARRAY['Action', 'Comedy', 'Drama', 'Family', 'Horror', 'Music'])[i]
FROM generate_series(1, 6) AS i;
INSERT INTO film SELECT i, 'Film ' || i, (enum_range(NULL::rating))[1 + i % 5], (ARRAY[0.99, 2.99, 4.99])[1 + i % 3],
    10 + i % 20 + 0.99, 50 + i % 130, 2000 + i % 7, to_tsvector('film ' || i) FROM generate_series(1, 100) AS i;
INSERT INTO film_category SELECT i, c FROM generate_series(1, 100) AS i, generate_series(1, 6) AS c
WHERE (i + c) % 3 = 0 OR i % 6 + 1 = c;
INSERT INTO actor SELECT i, 'First ' || i % 9, 'Last ' || i FROM generate_series(1, 30) AS i;
INSERT INTO film_actor SELECT a, f FROM generate_series(1, 30) AS a, generate_series(1, 100) AS f
WHERE (a * f) % 11 = 1;
INSERT INTO inventory SELECT i, 1 + i % 100, 1 + i / 100 % 2 FROM generate_series(1, 400) AS i;
INSERT INTO customer SELECT i, 1 + i % 2, 'First ' || i, 'Last ' || i, i, i % 40 > 0, date '2021-06-01' + i % 200
FROM generate_series(1, 600) AS i;
INSERT INTO rental SELECT row_number() OVER (ORDER BY c, n),
    timestamp '2022-01-05 08:00' + (c * 7919 + n * 104729) % 5000 * interval '90 minutes', 1 + (c * 31 + n * 17) % 400,
    c, CASE WHEN (c + n) % 30 > 0 THEN timestamp '2022-01-05 08:00' + (c * 7919 + n * 104729) % 5000
    * interval '90 minutes' + (1 + (c * n) % 9) * interval '1 day' + n * interval '1 hour' END, 1 + (c + n) % 3
FROM generate_series(1, 600) AS c, generate_series(1, 5 + CASE WHEN c % 50 = 0 THEN 25 ELSE c % 11 END) AS n;
INSERT INTO payment SELECT row_number() OVER (), customer_id, staff_id, rental_id,
    (ARRAY[0.99, 2.99, 4.99, 8.99])[1 + rental_id % 4], rental_date + interval '1 hour'
FROM rental WHERE rental_date < '2022-11-01';
ANALYZE;
"""

RULES = """\
database: ${NOISEGATE_DATABASE}
unit: customer.customer_id
tables:
  customer:
    unit: customer_id
    columns:
      create_date: {lower: 2021-01-01, upper: 2022-12-31}
  rental:
    unit: customer_id
    rows_per_unit: 40
    columns:
      rental_date: {lower: 2022-01-01, upper: 2022-12-31}
      return_date: {lower: 2022-01-01, upper: 2023-01-31}
  payment:
    unit: customer_id
    rows_per_unit: 40
    columns:
      amount: {lower: 0, upper: 12}
      payment_date: {lower: 2022-01-01, upper: 2022-12-31}
  country: public
  city: public
  address: public
  store: public
  staff: {public: {because: "the names of our staff stand on every receipt"}}
  category: public
  film: public
  film_category: public
  actor: public
  film_actor: public
  inventory: public
"""
