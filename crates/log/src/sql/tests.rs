use super::{Dialect, INPUT_BYTES_MAX, STATEMENT_BYTES_MAX, normalise_sql};
use Dialect::{Mysql, Pgsql, Sqlite, Unknown};

fn normal(text: &[u8], dialect: Dialect) -> String {
    let mut to = [0; STATEMENT_BYTES_MAX];
    let len = normalise_sql(text, dialect, &mut to);
    String::from_utf8_lossy(&to[..len]).into_owned()
}

/// Also normalises the result again, as the server does.
fn check(cases: &[(Dialect, &str, &str)]) {
    for (dialect, text, expected) in cases {
        let found = normal(text.as_bytes(), *dialect);
        assert_eq!(found, *expected, "{dialect:?}: {text}");
        assert_eq!(normal(found.as_bytes(), Pgsql), *expected, "twice, {dialect:?}: {text}");
    }
}

const ALL: [Dialect; 4] = [Unknown, Mysql, Pgsql, Sqlite];

#[test]
fn literals_and_layout_are_folded_in_all_dialects() {
    for (text, expected) in [
        ("", ""),
        ("select 1", "select ?"),
        ("SELECT  a ,b\n\tFROM t WHERE x=1 ;", "SELECT a, b FROM t WHERE x=?"),
        ("SELECT * FROM t1 WHERE a='x''y' AND b=1.5e-3", "SELECT * FROM t1 WHERE a=? AND b=?"),
        ("SELECT .5, t.a, 0xDEADbeef, 1E+5, 12abc", "SELECT ?, t.a, ?"),
        ("UPDATE t SET a = -1, b = +2.5 WHERE c = - 3", "UPDATE t SET a = ?, b = ? WHERE c = ?"),
        ("SELECT a - 1, a -1", "SELECT a - ?, a -?"),
        ("SELECT * FROM t WHERE id IN (1,2, 3 )", "SELECT * FROM t WHERE id IN (?)"),
        ("SELECT * FROM t WHERE id IN (-1, -2)", "SELECT * FROM t WHERE id IN (?)"),
        ("SELECT * FROM t WHERE id IN (:a, :b_2, ?)", "SELECT * FROM t WHERE id IN (?)"),
        ("INSERT INTO t (a, b) VALUES (1,'x'),(2,'y')", "INSERT INTO t (a, b) VALUES (?)"),
        (
            "INSERT INTO t VALUES (1, now(), f(2)), (3, now(), f(4)), (5, now(), f(6))",
            "INSERT INTO t VALUES (?, now(), f(?))",
        ),
        ("SELECT (1), (2), (a), (a)", "SELECT (?), (a)"),
        ("SELECT f(1, 'a'), g()", "SELECT f(?), g()"),
        ("SELECT a /* secret 'x' */ FROM t -- secret\nWHERE b", "SELECT a FROM t WHERE b"),
        ("/* all */", ""),
        ("SELECT 1 /* open", "SELECT ?"),
        ("SELECT 1 -- open", "SELECT ?"),
        ("SELECT 'unterminated secret", "SELECT ?"),
        ("SELECT `unterminated secret", "SELECT ?"),
        ("SELECT N'a', x'ff', b'01', _utf8'b'", "SELECT ?"),
        ("SELECT 'a' 'b'", "SELECT ? ?"),
        ("SELECT `a b`.`c` FROM `t`", "SELECT `a b`.`c` FROM `t`"),
        ("SELECT größe, 'straße' FROM ä", "SELECT größe, ? FROM ä"),
        ("SELECT * FROM t LIMIT 10, 20", "SELECT * FROM t LIMIT ?"),
        ("SELECT * FROM t WHERE a IN (SELECT 1)", "SELECT * FROM t WHERE a IN (SELECT ?)"),
        ("BEGIN", "BEGIN"),
        ("((((((((((((((((((((1))))))))))))))))))))", "((((((((((((((((((((?))))))))))))))))))))"),
        ("a) b (", "a) b ("),
        ("SELECT\u{0}'a'\u{7f}b", "SELECT ? b"),
    ] {
        for dialect in ALL {
            check(&[(dialect, text, expected)]);
        }
    }
}

#[test]
fn quotes_are_those_of_the_dialect() {
    check(&[
        (Mysql, r"SELECT 'it\'s secret', x", "SELECT ?, x"),
        (Mysql, r"SELECT 'a\\', x", "SELECT ?, x"),
        (Mysql, r#"SELECT "it\"s secret", x"#, "SELECT ?, x"),
        (Mysql, "SELECT \"a\"\"b\", x", "SELECT ?, x"),
        (Mysql, "SELECT 1 # secret\n, x", "SELECT ?, x"),
        (Mysql, "SELECT 5--1", "SELECT ?-?"),
        (Mysql, "SELECT /*!40001 SQL_NO_CACHE */ a", "SELECT a"),
        (Mysql, "SELECT @a := 5, @@session.x", "SELECT @a := ?, @@session.x"),
        (Mysql, "SELECT `a``secret`", "SELECT ?"),
        (Pgsql, r"SELECT 'a\', x", "SELECT ?, x"),
        (Pgsql, r"SELECT E'it\'s secret', x", "SELECT ?, x"),
        (
            Pgsql,
            "SELECT \"Order Id\" FROM \"t\" WHERE \"a\" = 'b'",
            "SELECT \"Order Id\" FROM \"t\" WHERE \"a\" = ?",
        ),
        (Pgsql, "SELECT $1, $2::int, a::text", "SELECT ?::int, a::text"),
        (Pgsql, "SELECT $$secret 'x$$, $a$ $$ secret $b$ $a$, y", "SELECT ?, y"),
        (Pgsql, "SELECT $$secret", "SELECT ?"),
        (Pgsql, "SELECT $tag$ secret $tag", "SELECT ?"),
        (Pgsql, "SELECT a /* x /* y */ 'secret' */ FROM t", "SELECT a FROM t"),
        (Pgsql, "SELECT a #> '{b}' FROM t", "SELECT a #> ? FROM t"),
        (Pgsql, "SELECT \"unterminated secret", "SELECT ?"),
        (Sqlite, r"SELECT 'a\', x", "SELECT ?, x"),
        (Sqlite, "SELECT [a b] FROM [t]", "SELECT [a b] FROM [t]"),
        (Sqlite, "SELECT [it's] FROM t WHERE a = 'secret'", "SELECT ? FROM t WHERE a = ?"),
        (
            Sqlite,
            "SELECT * FROM t WHERE a = ?1 AND b = $x AND c = @d",
            "SELECT * FROM t WHERE a = ? AND b = ? AND c = @d",
        ),
        // Where the end of a string depends on the database, the rest is unknown.
        (Unknown, r"SELECT 'a\', x FROM t WHERE y = 'secret'", "SELECT ? …"),
        (Unknown, "SELECT /* /* */ 'secret' */ a", "SELECT …"),
        (Unknown, "SELECT [it's] FROM t WHERE a = 'secret'", "SELECT …"),
        (Unknown, "SELECT ARRAY[1, 2]", "SELECT ARRAY[?]"),
    ]);
}

#[test]
fn double_quotes_are_names_where_a_name_fits() {
    for dialect in [Sqlite, Unknown] {
        for (text, expected) in [
            (
                r#"select "id", "a" from "users" where "users"."id" = ? order by "n""#,
                r#"select "id", "a" from "users" where "users"."id" = ? order by "n""#,
            ),
            (
                r#"insert into "t" ("a", "b") values ("x", "y"), (now(), "z")"#,
                r#"insert into "t" ("a", "b") values (?), (now(), ?)"#,
            ),
            (r#"select * from t where a = "secret""#, "select * from t where a = ?"),
            (r#"select * from t where a in ("x", "y")"#, "select * from t where a in (?)"),
            (
                r#"where a between "x" and "y" and "b" = 1"#,
                r#"where a between ? and ? and "b" = ?"#,
            ),
            (r#"case when a then "x" else "y" end"#, "case when a then ? else ? end"),
            (r#"where a like "x%""#, "where a like ?"),
            (r#"update t set "a" = "x""#, r#"update t set "a" = ?"#),
            (r#"select "it's" "#, "select ?"),
        ] {
            check(&[(dialect, text, expected)]);
        }
    }
}

#[test]
fn long_statement_is_cut_off() {
    let columns: Vec<_> = (0..INPUT_BYTES_MAX).map(|n| format!("column_{n}")).collect();
    let text = format!("SELECT {} FROM t", columns.join(", "));
    let found = normal(text.as_bytes(), Mysql);
    assert!(found.ends_with('…') && found.len() <= STATEMENT_BYTES_MAX, "{found}");
    let mut to = [0; STATEMENT_BYTES_MAX + 8];
    let len = normalise_sql(found.as_bytes(), Pgsql, &mut to);
    assert_eq!(&to[..len], found.as_bytes());
    let bulk = format!("INSERT INTO t VALUES {}", vec!["(1, 'secret')"; INPUT_BYTES_MAX].join(","));
    assert!(normal(bulk.as_bytes(), Mysql).starts_with("INSERT INTO t VALUES (?)"));
}

#[test]
fn no_room_is_enough_for_any_statement() {
    for room in 0..20 {
        let mut to = vec![0; room];
        assert!(normalise_sql(b"SELECT a, -1, (b), (b) FROM t", Unknown, &mut to) <= room);
    }
}

/// Bytes that begin or end something, in all orders.
#[test]
fn no_text_reveals_a_string() {
    let parts =
        ["'", "\"", "`", "\\", "/*", "*/", "--", "\n", "$$", "$a$", "[", "]", "E", "(", ",", "1"];
    let mut seed = 1_u64;
    for _ in 0..50_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(parts[(seed >> 33) as usize % parts.len()]);
        }
        for dialect in ALL {
            let once = normal(text.as_bytes(), dialect);
            assert!(!once.contains('\''), "{dialect:?}: {text:?}: {once}");
        }
    }
}
