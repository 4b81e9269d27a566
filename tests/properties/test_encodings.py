"""Texts of databases that are not in UTF8: no admitted function fails of a letter that has several bytes."""

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.functions.function import EvalContext
from rules.functions.registry import call
from rules.kernel.expressions import expression_sql
from rules.refusal import NotSupported
from tests.properties import worst
from tests.properties.examples import EXAMPLES, SYNTAX, columns_of
from tests.properties.planning import PINNED, Lab
from tests.properties.test_totality import bound, columns_used, is_too_new
from tests.support.catalogs import catalog_of

LETTERS = {"EUC_JP": "\u3042b\u3044", "EUC_KR": "\uac00", "LATIN1": "\u00e4\u00df", "WIN1252": "\u20ac"}
OF_TEXTS = [example for example in EXAMPLES if set(columns_of(SYNTAX[example])) in ({"t"}, {"vc"}, {"t", "vc"})]


@pytest.mark.parametrize("encoding", LETTERS)
def test_no_function_of_texts_fails_of_a_letter(real_cluster: Cluster, encoding: str) -> None:
    name = f"letters_{encoding.lower()}"
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
    with psycopg.connect(real_cluster.dsn(name), autocommit=True, client_encoding="UTF8") as connection:
        connection.execute("CREATE TABLE letters (t text, vc varchar(12))")
        connection.execute("INSERT INTO letters VALUES (%s, %s)", [LETTERS[encoding]] * 2)
        connection.execute(PINNED)
        lab = Lab(connection, catalog_of(real_cluster.dsn(name)))
        for text in OF_TEXTS:
            _check(lab, text)


def _check(lab: Lab, text: str) -> None:
    """On the row, unless it fails without one, as a constant does that the encoding does not have."""
    if is_too_new(lab, text):
        return
    try:
        made = bound(lab, SYNTAX[text], nullable=True)
    except NotSupported as refusal:
        assert "needs a database with encoding UTF8" in str(refusal), text
        return
    sql = expression_sql(made, {worst.column(text, nullable=True).id: text for text in columns_used(made)})
    asked = f"SELECT count(({sql})::text) FROM public.letters"
    try:
        lab.connection.execute(f"{asked} WHERE false")
    except psycopg.errors.UntranslatableCharacter:
        return
    lab.connection.execute(asked)


def test_ascii_is_refused_where_a_letter_has_several_bytes_that_are_not_unicode() -> None:
    setting = EvalContext(encoding="EUC_JP")

    with pytest.raises(NotSupported, match="has EUC_JP"):
        call("ascii", (worst.column("t", nullable=True),), setting)
