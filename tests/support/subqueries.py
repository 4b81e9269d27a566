"""Subqueries that depend on the row around them, by the table of that row: what the property tests draw from."""

CONDITIONS = {
    "p": (
        "EXISTS (SELECT FROM visits AS x WHERE x.person_id = p.id AND x.count > 0)",
        "p.id IN (SELECT x.person_id FROM visits AS x WHERE x.kind = 'a' AND x.person_id IS NOT NULL)",
        "NOT EXISTS (SELECT FROM visits AS x JOIN items AS y ON y.visit_id = x.id WHERE x.person_id = p.id AND y.flag)",
        "EXISTS (SELECT FROM places AS x WHERE x.size > p.age)",
        "EXISTS (SELECT FROM visits AS x WHERE x.person_id = p.id AND (x.count > 0 OR "
        "EXISTS (SELECT FROM items AS y WHERE y.visit_id = x.id AND y.flag)))",
        "EXISTS (SELECT FROM visits AS x WHERE x.person_id = p.id AND "
        "(SELECT y.size FROM places AS y WHERE y.id = x.place_id) < p.age)",
        "(SELECT bool_or(x.count > 0) FROM visits AS x WHERE x.person_id = p.id)",
    ),
    "v": (
        "EXISTS (SELECT FROM items AS x WHERE x.visit_id = v.id AND x.amount > 0)",
        "EXISTS (SELECT FROM people AS x WHERE x.id = v.person_id AND x.vip)",
        "EXISTS (SELECT FROM visits AS x WHERE x.person_id = v.person_id AND x.day > v.day)",
        "(SELECT x.region = 'north' FROM places AS x WHERE x.id = v.place_id)",
    ),
    "i": ("EXISTS (SELECT FROM visits AS x WHERE x.id = i.visit_id AND x.count > i.line)",),
}
NUMBERS = {
    "p": (
        "(SELECT count(*) FROM visits AS x WHERE x.person_id = p.id)",
        "(SELECT count(DISTINCT x.kind) + max(x.count) FROM visits AS x WHERE p.id = x.person_id AND x.cost < 50)",
        "(SELECT sum(x.cost) FROM visits AS x WHERE x.person_id = p.id AND x.kind = p.note)",
        "(SELECT x.cost FROM visits AS x WHERE x.person_id = p.id ORDER BY x.day DESC, x.id LIMIT 1)",
        "(SELECT count(*) FROM visits AS x WHERE x.person_id = p.id AND "
        "(SELECT sum(y.amount) FROM items AS y WHERE y.visit_id = x.id) > 0)",
        "(SELECT count(*) FROM visits AS x JOIN items AS y ON y.visit_id = x.id WHERE x.person_id = p.id)",
    ),
    "v": (
        "(SELECT x.size FROM places AS x WHERE x.id = v.place_id)",
        "(SELECT x.age + 1 FROM people AS x WHERE x.id = v.person_id)",
        "(SELECT sum(x.amount) FROM items AS x WHERE x.visit_id = v.id)",
        "(SELECT avg(x.cost) FROM visits AS x WHERE x.person_id = v.person_id)",
        "(SELECT count(x.cost) FROM visits AS x WHERE x.person_id = v.person_id AND x.kind = v.kind)",
        "(SELECT x.amount FROM items AS x WHERE x.visit_id = v.id ORDER BY x.line LIMIT 1)",
    ),
    "i": ("(SELECT x.count FROM visits AS x WHERE x.id = i.visit_id)",),
}
TEXTS = {
    "p": ("(SELECT max(x.kind) FROM visits AS x WHERE x.person_id = p.id)",),
    "v": (
        "(SELECT x.region FROM places AS x WHERE x.id = v.place_id)",
        "(SELECT x.city FROM people AS x WHERE x.id = v.person_id)",
    ),
    "i": ("(SELECT x.kind FROM visits AS x WHERE x.id = i.visit_id)",),
}
