--
-- PostgreSQL database dump
--

\restrict lceN6V9cscmpd4n4Mx16Amb2X1SqFrH8kKfui12OSkfTx2KL9i8T3k9qe4f42CF

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: noisegate_ledger; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA noisegate_ledger;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: entries; Type: TABLE; Schema: noisegate_ledger; Owner: -
--

CREATE TABLE noisegate_ledger.entries (
    id integer NOT NULL,
    kind text NOT NULL,
    "time" text NOT NULL,
    analyst text NOT NULL,
    entry text NOT NULL,
    seal text NOT NULL
);


--
-- Name: meta; Type: TABLE; Schema: noisegate_ledger; Owner: -
--

CREATE TABLE noisegate_ledger.meta (
    name text NOT NULL,
    value text NOT NULL
);


--
-- Name: releases; Type: TABLE; Schema: noisegate_ledger; Owner: -
--

CREATE TABLE noisegate_ledger.releases (
    id integer NOT NULL,
    charge integer NOT NULL,
    "time" text NOT NULL,
    block text NOT NULL,
    measure text NOT NULL,
    cost text NOT NULL,
    epsilon double precision,
    groups text NOT NULL,
    list text NOT NULL,
    numbers text NOT NULL,
    entry integer
);


--
-- Name: seen; Type: TABLE; Schema: noisegate_ledger; Owner: -
--

CREATE TABLE noisegate_ledger.seen (
    account text NOT NULL,
    period text NOT NULL,
    release integer NOT NULL,
    entry integer NOT NULL
);


--
-- Name: totals; Type: TABLE; Schema: noisegate_ledger; Owner: -
--

CREATE TABLE noisegate_ledger.totals (
    account text NOT NULL,
    period text NOT NULL,
    epsilon text NOT NULL,
    delta text NOT NULL,
    rho text NOT NULL,
    pure integer NOT NULL
);


--
-- Data for Name: entries; Type: TABLE DATA; Schema: noisegate_ledger; Owner: -
--

INSERT INTO noisegate_ledger.entries VALUES (1, 'charge', '2026-11-29T00:46:24.400144+00:00', 'ada', '{"analyst":"ada","fingerprint":"c9aa61a10a4dbdbb","first":[],"kind":"charge","mechanisms":[["0.5","0","0.125"]],"period":"ever","session":"8999694d2d3a4f05","shape":"SELECT city, count(*) FROM customers GROUP BY city ORDER BY city","sights":[],"statement":"ebea7a4c6a8e96c03424c9cc7e9126deea211f202dc7e50f2899ab6227687073 [true,[[\"3e535d5f91235f147ae3\",true,[[[\"str\",\"Berlin\"],[\"str\",\"Graz\"],[\"str\",\"Lyon\"],[\"str\",\"Porto\"]],null,null,false,false,true]]]] 2008ccfc93be021c025fa1f9217d084fa7236f5bbbfe534c27a6e3515148fbbe","tables":["customers"],"time":"2026-11-29T00:46:24.400144+00:00","unit":"customers.id"}', '6a041506126e6aeb4d06476a802830afcd14dfbe3de819b7840cf10c511538cc');
INSERT INTO noisegate_ledger.entries VALUES (2, 'settle', '2026-11-29T00:46:24.400144+00:00', 'ada', '{"analyst":"ada","charge":1,"kind":"settle","period":"ever","releases":[[1,"a7f9f026a305279b4c75e1abd079be18d73219e28efbe33a36b2a183f57d33e5"]],"time":"2026-11-29T00:46:24.400144+00:00"}', '23de3c844c3610ddc70fae43327020228082879c79c6bbaefe7725c2d402f816');
INSERT INTO noisegate_ledger.entries VALUES (3, 'charge', '2026-11-29T00:46:24.585482+00:00', 'ada', '{"analyst":"ada","fingerprint":"b7f262b466a9b871","first":[],"kind":"charge","mechanisms":[["0.25","0","0.03125"],["0.25","0","0.03125"]],"period":"ever","session":"8999694d2d3a4f05","shape":"SELECT status, round(avg(amount), ?) FROM orders GROUP BY status","sights":[],"statement":"e42d508531d86beab4b88212f08544b06b5a166e9e3eef6f5ff4b2ee4cce3120 [false,[[\"3f1f7ce203b9280e9bb4\",true,null]]] 8be1fdf0d891efef48792f52c99257ba118d61bed4c81915f4830fd27e04a3cf","tables":["orders"],"time":"2026-11-29T00:46:24.585482+00:00","unit":"customers.id"}', '0669bb0eed1e8df833fa99d03e064c2baa6ae96d0bfb7b6d6335b400f97849e7');
INSERT INTO noisegate_ledger.entries VALUES (4, 'settle', '2026-11-29T00:46:24.585482+00:00', 'ada', '{"analyst":"ada","charge":3,"kind":"settle","period":"ever","releases":[[2,"9e2ba708239cdfe32a7199aede80c829e528c8cd75601369b5f81d4e223702de"],[3,"6f77edb359c8b75401911d99b751890018418fb201a7722164ee52d9536b9a14"]],"time":"2026-11-29T00:46:24.585482+00:00"}', '922b267cf51d085f8771ab5f4c69df3e5ec01abbb7cc575520279a568b6c82c5');
INSERT INTO noisegate_ledger.entries VALUES (5, 'charge', '2026-11-29T00:46:24.810152+00:00', 'ada', '{"analyst":"ada","fingerprint":"e99c63c61ba29e0f","first":[],"kind":"charge","mechanisms":[["0.5","0","0.125"]],"period":"ever","session":"8999694d2d3a4f05","shape":"SELECT country, count(*) FROM customers GROUP BY country","sights":[],"statement":"41b0d022e96211cf71e685a5f95a4f06b792f8e2a6ffe7a1250906853d6d2777","tables":["customers"],"time":"2026-11-29T00:46:24.810152+00:00","unit":"customers.id"}', 'b0fda8b1ef268e4f9a48ea86922e8ffb6cc04634cbb3fc5069578a0319413da8');
INSERT INTO noisegate_ledger.entries VALUES (6, 'settle', '2026-11-29T00:46:24.810152+00:00', 'ada', '{"analyst":"ada","charge":5,"kind":"settle","period":"ever","releases":[[4,"312e108233e4179d0eb51c7f75779b994ccff0f3baf231e94f8dc1d93180b683"]],"time":"2026-11-29T00:46:24.810152+00:00"}', '2a65993db616f717a9503727101c6852638a3845dd34edd7c70260535e3370a6');
INSERT INTO noisegate_ledger.entries VALUES (7, 'charge', '2026-11-29T00:46:25.123586+00:00', 'bob', '{"analyst":"bob","fingerprint":"2a62d732e4852452","first":[],"first_of_role":[],"kind":"charge","mechanisms":[["1","0","0.5"]],"period":"ever","role":"research","session":"957efeb163a27720","shape":"SELECT category, count(DISTINCT customer_id) FROM orders JOIN order_items ON order_id = orders.id JOIN products ON products.id = product_id GROUP BY category","sights":[],"statement":"ce7db9a8ce017527ee46c14b28fa98e99065157cc971bd86f158d5b64010b346 [false,[[\"386020b6d88cc7fb7461\",true,null]]] b765a32c865858309ac0726acacb99da0737590d2f99ca1fc62eb8c8e3b52799","tables":["order_items","orders","products"],"time":"2026-11-29T00:46:25.123586+00:00","unit":"customers.id"}', '20834290e68ac6dcd68763084ddee32242efdf0b4db725cdf5c8ab6dcfd1f879');
INSERT INTO noisegate_ledger.entries VALUES (8, 'settle', '2026-11-29T00:46:25.123586+00:00', 'bob', '{"analyst":"bob","charge":7,"kind":"settle","period":"ever","releases":[[5,"dd6091be3108e4cf693f5e02b966951f156f7d8c648bf20c1dbee83b03f1120a"]],"role":"research","time":"2026-11-29T00:46:25.123586+00:00"}', '46c6a825590371d67f9b98f4aabaf5b9f018ac0fdac6c598f4a4bb966d52e219');
INSERT INTO noisegate_ledger.entries VALUES (9, 'charge', '2026-11-29T00:46:25.464135+00:00', 'bob', '{"analyst":"bob","fingerprint":"44d62ba4f785fd78","first":[],"first_of_role":[],"kind":"charge","mechanisms":[["1","0","0.125"]],"period":"ever","role":"research","session":"957efeb163a27720","shape":"SELECT percentile_cont(?) WITHIN GROUP (ORDER BY amount) FROM orders","sights":[],"statement":"e42d508531d86beab4b88212f08544b06b5a166e9e3eef6f5ff4b2ee4cce3120 [true,[]] 22c25bca96db09a126970fce980aae2036bebb4fe5b08ade36d8dbb84d3740be","tables":["orders"],"time":"2026-11-29T00:46:25.464135+00:00","unit":"customers.id"}', '614b44b63c078a783bd2f25d6ff0f4bf177e0a4abdfa296a86ec86b242e41112');
INSERT INTO noisegate_ledger.entries VALUES (10, 'settle', '2026-11-29T00:46:25.464135+00:00', 'bob', '{"analyst":"bob","charge":9,"kind":"settle","period":"ever","releases":[[6,"d879903f3a8c749f57afe009784d7fc01eb71cbca8aa0d5ffbf2d83e0794080b"]],"role":"research","time":"2026-11-29T00:46:25.464135+00:00"}', 'b26687cdaef76ef32d070af5c69c6536eb02b9b8f7a1735692eb63e0f7e07a0e');
INSERT INTO noisegate_ledger.entries VALUES (11, 'request', '2026-11-29T00:46:25.582606+00:00', 'bob', '{"analyst":"bob","epsilon":"5","kind":"request","period":"ever","reason":"a report","time":"2026-11-29T00:46:25.582606+00:00"}', 'b29dcdc54c4898e0675c980e282149dd4c1535a8ee3d6fe65da55080f044d62f');


--
-- Data for Name: meta; Type: TABLE DATA; Schema: noisegate_ledger; Owner: -
--

INSERT INTO noisegate_ledger.meta VALUES ('identity', '7713388049128123014/shop');
INSERT INTO noisegate_ledger.meta VALUES ('version', '4');


--
-- Data for Name: releases; Type: TABLE DATA; Schema: noisegate_ledger; Owner: -
--

INSERT INTO noisegate_ledger.releases VALUES (1, 1, '2026-11-29T00:46:24.400144+00:00', 'ebea7a4c6a8e96c03424c9cc7e9126deea211f202dc7e50f2899ab6227687073 [true,[["3e535d5f91235f147ae3",true,[[["str","Berlin"],["str","Graz"],["str","Lyon"],["str","Porto"]],null,null,false,false,true]]]] 2008ccfc93be021c025fa1f9217d084fa7236f5bbbfe534c27a6e3515148fbbe', 'rows where TRUE within 1', '["0.5","0","0.125"]', 0.5, '[["Berlin"],["Graz"],["Lyon"],["Porto"],[null]]', '0663de6b594b394f960858ca24fd02699da88706328142721be6bfa4adab847f', '[157,78,82,76,22]', 2);
INSERT INTO noisegate_ledger.releases VALUES (2, 3, '2026-11-29T00:46:24.585482+00:00', 'e42d508531d86beab4b88212f08544b06b5a166e9e3eef6f5ff4b2ee4cce3120 [false,[["3f1f7ce203b9280e9bb4",true,null]]] 8be1fdf0d891efef48792f52c99257ba118d61bed4c81915f4830fd27e04a3cf', 'centred sum of t1."amount" from 0 to 50000 in steps of 1/100 within 2048000000 of 1024 parts', '["0.25","0","0.03125"]', 0.25, '[["open"],["paid"],["sent"],["returned"]]', '4e550c2e6033d47efd5b34869ea0333e4cf858e7f46bcdd1041a69d97879285c', '[-6078795,3914133,-5892709,-5865254]', 4);
INSERT INTO noisegate_ledger.releases VALUES (3, 3, '2026-11-29T00:46:24.585482+00:00', 'e42d508531d86beab4b88212f08544b06b5a166e9e3eef6f5ff4b2ee4cce3120 [false,[["3f1f7ce203b9280e9bb4",true,null]]] 8be1fdf0d891efef48792f52c99257ba118d61bed4c81915f4830fd27e04a3cf', 'rows where TRUE within 2621440 of 65536 parts', '["0.25","0","0.03125"]', 0.25, '[["open"],["paid"],["sent"],["returned"]]', '4e550c2e6033d47efd5b34869ea0333e4cf858e7f46bcdd1041a69d97879285c', '[-87,424,241,233]', 4);
INSERT INTO noisegate_ledger.releases VALUES (4, 5, '2026-11-29T00:46:24.810152+00:00', '41b0d022e96211cf71e685a5f95a4f06b792f8e2a6ffe7a1250906853d6d2777', 'rows where TRUE within 1', '["0.5","0","0.125"]', 0.5, '[["DE"],["FR"],["PT"],[null]]', 'bef75e00d338c726c9d2b9bda50ff8b805f78296b079441af261b1eeca607453', '[160,80,79,81]', 6);
INSERT INTO noisegate_ledger.releases VALUES (5, 7, '2026-11-29T00:46:25.123586+00:00', 'ce7db9a8ce017527ee46c14b28fa98e99065157cc971bd86f158d5b64010b346 [false,[["386020b6d88cc7fb7461",true,null]]] b765a32c865858309ac0726acacb99da0737590d2f99ca1fc62eb8c8e3b52799', 'units where TRUE within 3', '["1","0","0.5"]', 1, '[["book"],["game"],["tool"]]', '3857d60b10cfe6dec66f27c31a2554d6dce92987407b84e4ee94b337cc2473b4', '[354,337,312]', 8);
INSERT INTO noisegate_ledger.releases VALUES (6, 9, '2026-11-29T00:46:25.464135+00:00', 'e42d508531d86beab4b88212f08544b06b5a166e9e3eef6f5ff4b2ee4cce3120 [true,[]] 22c25bca96db09a126970fce980aae2036bebb4fe5b08ade36d8dbb84d3740be', 'quantile 1/2 of t1."amount" from 0 to 50000 in steps of 1/100 by 13 within 2621440 of 65536 parts', '["1","0","0.125"]', 1, '[[]]', 'cf1cbb66a638b4860a516671fb74850e6ccf787fe6c4c8d29e9c04efe880bd05', '[1934]', 10);


--
-- Data for Name: seen; Type: TABLE DATA; Schema: noisegate_ledger; Owner: -
--

INSERT INTO noisegate_ledger.seen VALUES ('analyst:ada', 'ever', 1, 2);
INSERT INTO noisegate_ledger.seen VALUES ('analyst:ada', 'ever', 2, 4);
INSERT INTO noisegate_ledger.seen VALUES ('analyst:ada', 'ever', 3, 4);
INSERT INTO noisegate_ledger.seen VALUES ('analyst:ada', 'ever', 4, 6);
INSERT INTO noisegate_ledger.seen VALUES ('analyst:bob', 'ever', 5, 8);
INSERT INTO noisegate_ledger.seen VALUES ('role:research', 'ever', 5, 8);
INSERT INTO noisegate_ledger.seen VALUES ('analyst:bob', 'ever', 6, 10);
INSERT INTO noisegate_ledger.seen VALUES ('role:research', 'ever', 6, 10);


--
-- Data for Name: totals; Type: TABLE DATA; Schema: noisegate_ledger; Owner: -
--

INSERT INTO noisegate_ledger.totals VALUES ('analyst:ada', 'ever', '1.50', '0', '0.31250', 1);
INSERT INTO noisegate_ledger.totals VALUES ('analyst:ada', 'lifetime', '1.50', '0', '0.31250', 1);
INSERT INTO noisegate_ledger.totals VALUES ('dataset', 'ever', '3.50', '0', '0.93750', 1);
INSERT INTO noisegate_ledger.totals VALUES ('dataset', 'lifetime', '3.50', '0', '0.93750', 1);
INSERT INTO noisegate_ledger.totals VALUES ('analyst:bob', 'ever', '2', '0', '0.625', 1);
INSERT INTO noisegate_ledger.totals VALUES ('analyst:bob', 'lifetime', '2', '0', '0.625', 1);
INSERT INTO noisegate_ledger.totals VALUES ('role:research', 'ever', '2', '0', '0.625', 1);
INSERT INTO noisegate_ledger.totals VALUES ('role:research', 'lifetime', '2', '0', '0.625', 1);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (id);


--
-- Name: meta meta_pkey; Type: CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (name);


--
-- Name: releases releases_pkey; Type: CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.releases
    ADD CONSTRAINT releases_pkey PRIMARY KEY (id);


--
-- Name: seen seen_pkey; Type: CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.seen
    ADD CONSTRAINT seen_pkey PRIMARY KEY (account, period, release);


--
-- Name: totals totals_pkey; Type: CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (account, period);


--
-- Name: entries_of_an_analyst; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX entries_of_an_analyst ON noisegate_ledger.entries USING btree (analyst, kind, "time");


--
-- Name: releases_of_a_block; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX releases_of_a_block ON noisegate_ledger.releases USING btree (block, measure, "time");


--
-- Name: releases_of_a_charge; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX releases_of_a_charge ON noisegate_ledger.releases USING btree (charge);


--
-- Name: seen_by_entry; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX seen_by_entry ON noisegate_ledger.seen USING btree (entry);


--
-- Name: seen_releases; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX seen_releases ON noisegate_ledger.seen USING btree (release, period);


--
-- Name: words; Type: INDEX; Schema: noisegate_ledger; Owner: -
--

CREATE INDEX words ON noisegate_ledger.entries USING btree (id) WHERE (kind <> ALL (ARRAY['charge'::text, 'settle'::text, 'checkpoint'::text]));


--
-- Name: releases releases_charge_fkey; Type: FK CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.releases
    ADD CONSTRAINT releases_charge_fkey FOREIGN KEY (charge) REFERENCES noisegate_ledger.entries(id);


--
-- Name: seen seen_release_fkey; Type: FK CONSTRAINT; Schema: noisegate_ledger; Owner: -
--

ALTER TABLE ONLY noisegate_ledger.seen
    ADD CONSTRAINT seen_release_fkey FOREIGN KEY (release) REFERENCES noisegate_ledger.releases(id);


--
-- PostgreSQL database dump complete
--

\unrestrict lceN6V9cscmpd4n4Mx16Amb2X1SqFrH8kKfui12OSkfTx2KL9i8T3k9qe4f42CF

