-- A brokerage that grew: prefixes, no foreign keys, abbreviations, backups.
CREATE TABLE sbCustomer (sbCustId varchar(20) PRIMARY KEY, sbCustName varchar(200), sbCustEmail varchar(200));
CREATE TABLE sbTicker (sbTickerId varchar(20) PRIMARY KEY, sbTickerSymbol varchar(10), sbTickerExchange varchar(20));
CREATE TABLE sbDailyPrice (
    sbDpTickerId varchar(20), sbDpDate date, sbDpClose numeric(10,4), PRIMARY KEY (sbDpTickerId, sbDpDate)
);
CREATE TABLE sbTransaction (
    sbTxId varchar(50) PRIMARY KEY, sbTxCustId varchar(20), sbTxTickerId varchar(20), sbTxDateTime timestamp,
    sbTxShares numeric(10,2)
);
CREATE TABLE sbTxFee (sbFeeId integer PRIMARY KEY, sbFeeTxId varchar(50) REFERENCES sbTransaction, sbFee numeric(8,2));
CREATE TABLE tmp_export (c1 varchar(20), c2 integer);
CREATE TABLE cust_bak (cno varchar(20), segment varchar(10));
CREATE TABLE holidays (day date PRIMARY KEY, label varchar(40));
CREATE TABLE fx (currency char(3), day date, rate numeric(12,6), PRIMARY KEY (currency, day));
