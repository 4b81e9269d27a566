// What Go's two drivers do with a proxy: prints one line of JSON with everything each of them got.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgconn"
	_ "github.com/jackc/pgx/v4/stdlib"
	"github.com/lib/pq"
)

type got struct {
	Plain, Parameters, Prepared, Page [][]string
	Refused, Aborted                  string
	Types                             []string
}

func main() {
	target, cities, amounts, rows := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	all := map[string]got{}
	for _, driver := range []string{"postgres", "pgx"} {
		db, err := sql.Open(driver, target)
		check(err)
		check(db.Ping())
		all[driver] = ask(db, cities, amounts, rows)
		check(db.Close())
	}
	check(json.NewEncoder(os.Stdout).Encode(all))
}

func ask(db *sql.DB, cities, amounts, rows string) got {
	var found got
	found.Plain, found.Types = read(db.Query(cities))
	found.Parameters, _ = read(db.Query(amounts, "50"))
	statement, err := db.Prepare(cities)
	check(err)
	for turn := 0; turn < 2; turn++ {
		found.Prepared, _ = read(statement.Query())
	}
	check(statement.Close())
	_, err = db.Query(rows)
	found.Refused = code(err)
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	check(err)
	found.Page, _ = read(tx.Query(cities + " LIMIT $1 OFFSET $2", 2, 1))
	_, err = tx.Query(rows)
	_, err = tx.Query("SELECT 1")
	found.Aborted = code(err)
	check(tx.Rollback())
	return found
}

func read(result *sql.Rows, err error) ([][]string, []string) {
	check(err)
	defer result.Close()
	columns, err := result.ColumnTypes()
	check(err)
	var types []string
	for _, column := range columns {
		types = append(types, column.DatabaseTypeName())
	}
	rows := [][]string{}
	for result.Next() {
		values := make([]sql.NullString, len(columns))
		places := make([]interface{}, len(columns))
		for at := range values {
			places[at] = &values[at]
		}
		check(result.Scan(places...))
		row := []string{}
		for _, value := range values {
			row = append(row, value.String)
		}
		rows = append(rows, row)
	}
	check(result.Err())
	return rows, types
}

func code(err error) string {
	var ofPq *pq.Error
	var ofPgx *pgconn.PgError
	switch {
	case errors.As(err, &ofPq):
		return string(ofPq.Code)
	case errors.As(err, &ofPgx):
		return ofPgx.Code
	}
	return fmt.Sprint(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
