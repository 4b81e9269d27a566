// What postgres.js does with a proxy: prints one line of JSON with everything it got.
const postgres = require("postgres");

const [cities, amounts, rows] = JSON.parse(process.argv[2]);
const sql = postgres({
  host: "127.0.0.1",
  port: Number(process.env.PGPORT),
  user: "ada",
  database: process.env.PGDATABASE,
  password: process.env.PGPASSWORD,
  ssl: { rejectUnauthorized: false },
  onnotice: () => {},
});

const values = (result) => [...result].map((row) => Object.values(row));

async function main() {
  const got = {};
  got.plain = values(await sql.unsafe(cities));
  got.parameters = values(await sql.unsafe(amounts, ["50"]));
  got.prepared = [];
  for (let turn = 0; turn < 3; turn++) {
    got.prepared.push(values(await sql.unsafe(cities, [], { prepare: true })));
  }
  got.several = (await sql.unsafe("SELECT 1 AS one; SELECT 2 AS two")).length;
  got.refused = await sql.unsafe(rows).catch((error) => error.code);
  got.cursor = [];
  await sql.unsafe(cities).cursor(2, (part) => {
    got.cursor.push(...values(part));
  });
  got.transaction = await sql.begin(async (transaction) => {
    const inside = await transaction.savepoint((point) => point.unsafe(rows)).catch((error) => error.code);
    return [inside, values(await transaction.unsafe(cities)).length];
  });
  await sql.end();
  console.log(JSON.stringify(got));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
