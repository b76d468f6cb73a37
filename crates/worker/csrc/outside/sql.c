/* Proves that a statement leaves the session of its connection unchanged. pgsql.c and mysql.c
 * check each statement that is sent on a connection made above the checkpoint.
 *
 * It is a proof by allow-list. A statement is plain if all of the following is true:
 * - It begins with a known keyword, and every token is understood as the server understands it.
 * - PostgreSQL: it contains none of the names that the server lists as unsafe (db_session_pgsql.c):
 *   functions with side effects, and relations whose use may call one or that are temporary.
 * - MySQL: it calls only native functions of an allow-list (mysql_functions.c), and contains no
 *   user variable and none of the unsafe names (db_session_mysql.c).
 * Text that is not understood counts as a change, for example U&"…" and dollar quotes. */
#define _GNU_SOURCE
#include "outside/sql.h"
#include "outside/hash.h"
#include <string.h>

enum {
    WORD_BYTES_MAX = 40, /* of a word as text; no keyword or native function is longer */
    PGSQL_NAME_BYTES_MAX = 63
};

typedef enum {
    T_END,
    T_WORD,
    T_NAME,
    T_STRING,
    T_NUMBER,
    T_OPERATOR, /* PostgreSQL */
    T_MARK,
    T_UNKNOWN
} token_kind;

typedef struct {
    const char *at, *end;
    bool mysql;
    token_kind kind;
    char mark;                 /* of T_MARK */
    char word[WORD_BYTES_MAX]; /* T_WORD, T_NAME, T_OPERATOR: lower case, truncated */
    uint64_t hash;             /* of the whole word, as unsafe_names.h computes it */
    const char *from;          /* bytes of the word, without quotes */
    size_t len;
} sql_text;

/* `words`: each with a space before and after it. */
static bool is_among(const char *word, const char *words) {
    char wanted[WORD_BYTES_MAX + 2];
    const size_t len = strlen(word);
    if (len == 0) {
        return false;
    }
    wanted[0] = wanted[len + 1] = ' ';
    memcpy(wanted + 1, word, len);
    return memmem(words, strlen(words), wanted, len + 2) != NULL;
}

/* ---- tokens -------------------------------------------------------------------------------- */

/* The functions of ctype.h depend on the locale, which a request can change. */
static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word_char(char c) {
    const char lower = samovar_lower(c);
    return is_digit(c) || (lower >= 'a' && lower <= 'z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static char peek(const sql_text *t, size_t ahead) {
    return (size_t)(t->end - t->at) > ahead ? t->at[ahead] : 0;
}

static void set_word(sql_text *t, const char *from, const char *to) {
    t->from = from;
    t->len = (size_t)(to - from);
    t->hash = HASH_START;
    size_t kept = 0;
    for (; from < to; from++) {
        t->hash = samovar_name_hash(t->hash, *from);
        if (kept + 1 < sizeof t->word) {
            t->word[kept++] = samovar_lower(*from);
        }
    }
    t->word[kept] = 0;
}

/* Moves past the closing quote. Returns false if there is none. */
static bool skip_quoted(sql_text *t, bool with_backslash) {
    const char quote = *t->at;
    for (t->at++; t->at < t->end; t->at++) {
        if (with_backslash && *t->at == '\\') {
            t->at++;
        } else if (*t->at == quote) {
            t->at++;
            if (t->at >= t->end || *t->at != quote) {
                return true;
            }
        }
    }
    return false;
}

static bool skip_line(sql_text *t) {
    while (t->at < t->end && *t->at != '\n' && (t->mysql || *t->at != '\r')) {
        t->at++;
    }
    return true;
}

/* PostgreSQL's comments nest, MySQL's may be executed: both count as not understood. */
static bool skip_comment(sql_text *t) {
    if (t->mysql && (peek(t, 2) == '!' || peek(t, 2) == 'M' || peek(t, 2) == '+')) {
        return false;
    }
    for (t->at += 2; t->end - t->at >= 2; t->at++) {
        if (t->at[0] == '*' && t->at[1] == '/') {
            t->at += 2;
            return true;
        }
        if (t->at[0] == '/' && t->at[1] == '*') {
            return false;
        }
    }
    return false;
}

static bool begins_line_comment(const sql_text *t) {
    const char c = peek(t, 0), after = peek(t, 2);
    if (c == '#') {
        return t->mysql;
    }
    if (c != '-' || peek(t, 1) != '-') {
        return false;
    }
    return !t->mysql || t->end - t->at == 2 || is_space(after) || (after >= 0 && after < ' ') ||
           after == 0x7f;
}

/* Moves past white space and comments. Returns false if a comment is not understood. */
static bool skip_space(sql_text *t) {
    while (t->at < t->end) {
        if (is_space(*t->at)) {
            t->at++;
        } else if (begins_line_comment(t)) {
            skip_line(t);
        } else if (*t->at == '/' && peek(t, 1) == '*') {
            if (!skip_comment(t)) {
                return false;
            }
        } else {
            return true;
        }
    }
    return true;
}

/* MySQL's names may begin with a digit; PostgreSQL reads `1into` as a number and a word. */
static token_kind read_number(sql_text *t) {
    const char *from = t->at;
    bool digits_only = true;
    for (; t->at < t->end && is_word_char(*t->at); t->at++) {
        digits_only = digits_only && is_digit(*t->at);
    }
    if (digits_only) {
        return T_NUMBER;
    }
    const char *exponent = from;
    while (exponent < t->at && is_digit(*exponent)) {
        exponent++;
    }
    bool is_exponent = (*exponent | 0x20) == 'e';
    for (const char *c = exponent + 1; c < t->at; c++) {
        is_exponent = is_exponent && is_digit(*c);
    }
    if (is_exponent) {
        return T_NUMBER;
    }
    set_word(t, from, t->at);
    return t->mysql ? T_WORD : T_UNKNOWN;
}

/* PostgreSQL joins strings that a line break separates, and the first one decides whether a
 * backslash escapes. */
static bool is_continued(const sql_text *t) {
    const char *at = t->at;
    while (at < t->end && is_space(*at)) {
        at++;
    }
    return at < t->end && *at == '\'';
}

static token_kind read_string(sql_text *t, bool with_backslash) {
    if (!skip_quoted(t, with_backslash)) {
        return T_UNKNOWN;
    }
    return with_backslash && !t->mysql && is_continued(t) ? T_UNKNOWN : T_STRING;
}

static token_kind read_name(sql_text *t) {
    const char *from = t->at + 1;
    if (!skip_quoted(t, false)) {
        return T_UNKNOWN;
    }
    set_word(t, from, t->at - 1);
    return T_NAME;
}

static token_kind read_word(sql_text *t) {
    const char *from = t->at;
    while (t->at < t->end && is_word_char(*t->at)) {
        t->at++;
    }
    set_word(t, from, t->at);
    if (!t->mysql && t->len == 1 && (*from | 0x20) == 'e' && peek(t, 0) == '\'') {
        return read_string(t, true);
    }
    if (!t->mysql && t->len == 1 && (*from | 0x20) == 'u' && peek(t, 0) == '&' &&
        (peek(t, 1) == '"' || peek(t, 1) == '\'')) {
        return T_UNKNOWN;
    }
    return T_WORD;
}

/* $tag$ … $tag$ */
static token_kind read_dollar_quoted(sql_text *t) {
    const char *from = t->at++;
    while (t->at < t->end && *t->at != '$' && is_word_char(*t->at)) {
        t->at++;
    }
    if (peek(t, 0) != '$') {
        return T_UNKNOWN;
    }
    const size_t len = (size_t)(++t->at - from);
    const char *close = memmem(t->at, (size_t)(t->end - t->at), from, len);
    if (!close) {
        return T_UNKNOWN;
    }
    t->at = close + len;
    return T_STRING;
}

static bool is_operator_char(char c) {
    return c != 0 && strchr("+-*/<>=~!@#%^&|`?", c) != NULL;
}

/* An operator ends before a comment. */
static token_kind read_operator(sql_text *t) {
    const char *from = t->at;
    do {
        t->at++;
    } while (is_operator_char(peek(t, 0)) && !begins_line_comment(t) &&
             !(peek(t, 0) == '/' && peek(t, 1) == '*'));
    set_word(t, from, t->at);
    return T_OPERATOR;
}

static token_kind read_token(sql_text *t) {
    const char c = peek(t, 0);
    if (c == '\'') {
        return read_string(t, t->mysql);
    }
    if (c == '"') {
        return t->mysql ? read_string(t, true) : read_name(t);
    }
    if (c == '`' && t->mysql) {
        return read_name(t);
    }
    if (is_digit(c)) {
        return read_number(t);
    }
    if (c == '$' && !t->mysql) { /* A parameter, or a dollar-quoted string. */
        if (!is_digit(peek(t, 1))) {
            return read_dollar_quoted(t);
        }
        t->at++;
        return read_number(t);
    }
    if (!t->mysql && is_operator_char(c)) {
        return read_operator(t);
    }
    if (is_word_char(c)) {
        return read_word(t);
    }
    t->at++;
    t->mark = c;
    return c >= ' ' && c <= '~' && c != '\\' ? T_MARK : T_UNKNOWN;
}

/* libpq and mysqlnd may send the NUL of the end. MySQL reads on after any other one. */
static bool is_end(const sql_text *t) {
    const char *at = t->at;
    while (at < t->end && *at == 0) {
        at++;
    }
    return at >= t->end;
}

static token_kind next_token(sql_text *t) {
    if (!skip_space(t)) {
        t->kind = T_UNKNOWN;
    } else if (is_end(t)) {
        t->kind = T_END;
    } else {
        t->kind = read_token(t);
    }
    return t->kind;
}

/* ---- rules --------------------------------------------------------------------------------- */

typedef struct {
    sql_text text;
    const sql_rules *rules;
    unsigned effects;
    bool is_target; /* the name after INTO, which a list of columns may follow */
    bool after_dot;
    bool is_show;
    bool after_from; /* at the top level */
    unsigned depth;  /* of parentheses */
    char former[WORD_BYTES_MAX];
} sql_reading;

static bool is_known_start(const char *word, bool mysql) {
    return is_among(word, " select insert update delete with values table show begin start commit "
                          "end rollback savepoint release truncate ") ||
           is_among(word, mysql ? " replace describe desc explain " : " merge abort lock ");
}

static bool is_followed_by_parenthesis(const sql_text *t) {
    sql_text ahead = *t;
    return skip_space(&ahead) && peek(&ahead, 0) == '(';
}

/* last_insert_id(n) sets the value; without an argument it only reads it. */
static bool is_called_without_argument(const sql_text *t) {
    sql_text ahead = *t;
    return next_token(&ahead) == T_MARK && ahead.mark == '(' && next_token(&ahead) == T_MARK &&
           ahead.mark == ')';
}

static unsigned effects_of_mysql_call(const sql_reading *r) {
    const char *name = r->text.word;
    if (r->is_target) {
        return 0; /* A table with its columns. */
    }
    if (r->text.kind == T_NAME || r->after_dot) {
        return SQL_CHANGES; /* A stored function. */
    }
    if (strcmp(name, "last_insert_id") == 0) {
        return is_called_without_argument(&r->text) ? 0 : SQL_CHANGES;
    }
    if (strcmp(name, "row_count") == 0) {
        return SQL_COUNTS;
    }
    if (strcmp(name, "found_rows") == 0) {
        return SQL_FINDS;
    }
    return samovar_mysql_function_is_pure(name) ? 0 : SQL_CHANGES;
}

/* Statements may be nested: WITH x AS (INSERT …). */
static unsigned effects_of_verb(const char *word) {
    if (is_among(word, " insert replace merge ")) {
        return SQL_INSERTS | SQL_WRITES;
    }
    return is_among(word, " update delete truncate ") ? SQL_WRITES : 0;
}

/* PostgreSQL: the last value of a sequence changes, by a call or by a column's default. */
static unsigned effects_on_sequence(const sql_reading *r) {
    const bool is_default = r->text.kind == T_WORD && strcmp(r->text.word, "default") == 0;
    return is_default || is_among(r->text.word, " nextval setval ") ? SQL_INSERTS : 0;
}

static unsigned effects_of_keyword(sql_reading *r) {
    const char *word = r->text.word;
    if (strcmp(word, "into") == 0) { /* SELECT … INTO makes a table or sets a variable. */
        r->is_target = is_among(r->former, " insert replace merge ignore delayed low_priority "
                                           "high_priority ");
        return r->is_target ? 0 : SQL_CHANGES | SQL_HIDES;
    }
    if (is_among(word, " temp temporary atomic ") || strncmp(word, "pg_temp", 7) == 0) {
        return SQL_CHANGES | SQL_HIDES;
    }
    if (r->rules->mysql && strcmp(word, "for") == 0 && strcmp(r->former, "value") == 0) {
        return SQL_CHANGES; /* NEXT VALUE FOR, PREVIOUS VALUE FOR */
    }
    if (r->is_show && is_among(word, " warnings errors count ")) {
        return SQL_OBSERVES;
    }
    return effects_of_verb(word);
}

/* A table follows a FROM that is not an argument, as in TRIM(x FROM y). */
static unsigned effects_of_table(sql_reading *r) {
    const bool is_table = r->after_from && strcmp(r->text.word, "dual") != 0;
    r->after_from = r->text.kind == T_WORD && r->depth == 0 && strcmp(r->text.word, "from") == 0;
    return is_table ? SQL_TABLES : 0;
}

static unsigned effects_of_word(sql_reading *r) {
    sql_text *t = &r->text;
    const bool was_target = r->is_target, mysql = r->rules->mysql;
    unsigned effects = mysql ? effects_of_table(r) : effects_on_sequence(r);
    if (!mysql && t->len > PGSQL_NAME_BYTES_MAX) {
        return SQL_CHANGES; /* The server truncates it to another name. */
    }
    if (r->rules->unsafe && samovar_names_have(r->rules->unsafe, t->hash)) {
        effects |= SQL_CHANGES | SQL_HIDES;
    }
    if (mysql && is_followed_by_parenthesis(t)) {
        effects |= effects_of_mysql_call(r);
        if (effects & SQL_CHANGES) {
            effects |= SQL_HIDES;
        }
    } else if (t->kind == T_WORD && !r->after_dot) {
        effects |= effects_of_keyword(r);
    }
    if (was_target && !(t->at < t->end && *t->at == '.')) {
        r->is_target = false;
    }
    memcpy(r->former, t->word, sizeof r->former);
    return effects;
}

/* @name is a variable of the user, @@name one of the session, which is only read here. */
static unsigned effects_of_variable(sql_reading *r) {
    if (*r->text.at != '@') {
        return SQL_CHANGES | SQL_HIDES;
    }
    r->text.at++;
    while (next_token(&r->text) == T_WORD && is_among(r->text.word, " session local global ") &&
           peek(&r->text, 0) == '.') {
        r->text.at++;
    }
    if (r->text.kind != T_WORD) {
        return SQL_CHANGES;
    }
    return is_among(r->text.word, " warning_count error_count ") ? SQL_OBSERVES : 0;
}

static unsigned effects_of_mark(sql_reading *r) {
    sql_text *t = &r->text;
    if (t->mark == ';') {
        return next_token(t) == T_END ? 0 : SQL_CHANGES | SQL_HIDES;
    }
    if (t->mark == '@' && r->rules->mysql) {
        return effects_of_variable(r);
    }
    r->depth += t->mark == '(';
    r->depth -= t->mark == ')' && r->depth > 0;
    return 0;
}

static unsigned effects_of_rest(sql_reading *r) {
    unsigned effects = 0;
    token_kind before = r->text.kind;
    while (next_token(&r->text) != T_END) {
        switch (r->text.kind) {
        case T_WORD:
        case T_NAME:
            effects |= effects_of_word(r);
            break;
        case T_OPERATOR:
            if (r->rules->unsafe && samovar_names_have(r->rules->unsafe, r->text.hash)) {
                effects |= SQL_CHANGES | SQL_HIDES;
            }
            break;
        case T_MARK:
            effects |= effects_of_mark(r);
            break;
        case T_UNKNOWN:
            return SQL_CHANGES | SQL_HIDES;
        default:
            break;
        }
        /* After a number the dot is part of it: `1.into` */
        r->after_dot = r->text.kind == T_MARK && r->text.mark == '.' && before != T_NUMBER;
        before = r->text.kind;
        if (r->text.kind == T_END) {
            break;
        }
    }
    return effects;
}

/* DEALLOCATE name; */
static sql_statement read_deallocate(sql_text *t) {
    sql_statement statement = {.effects = SQL_CHANGES};
    char name[PGSQL_NAME_BYTES_MAX];
    const token_kind kind = next_token(t);
    if ((kind != T_WORD && kind != T_NAME) || t->len > sizeof name ||
        memchr(t->from, '"', t->len) || (kind == T_WORD && is_among(t->word, " all prepare "))) {
        return statement;
    }
    for (size_t i = 0; i < t->len; i++) {
        const char c = t->from[i];
        name[i] = kind == T_WORD ? samovar_lower(c) : c;
    }
    const uint64_t hash = samovar_hash(name, t->len);
    if (next_token(t) == T_END || (t->kind == T_MARK && t->mark == ';' && next_token(t) == T_END)) {
        statement = (sql_statement){.deallocates = hash};
    }
    return statement;
}

/* The body of a routine, a trigger or a view is not executed now. */
static bool is_definition_of_code(const char *word) {
    return is_among(word, " function procedure trigger event view package ");
}

/* The definition of a permanent object leaves nothing in the session. */
static bool is_hidden_definition(sql_text t, const sql_rules *rules) {
    bool is_code = false;
    while (next_token(&t) != T_END) {
        const bool is_word = t.kind == T_WORD;
        if (is_word && is_among(t.word, " temp temporary ") && !is_code) {
            return true;
        }
        if (t.kind == T_MARK && t.mark == ';' && !(is_code && t.mysql)) {
            return next_token(&t) != T_END;
        }
        if (is_code) {
            continue;
        }
        is_code = is_word && is_definition_of_code(t.word);
        if (t.kind == T_UNKNOWN || (t.kind == T_MARK && t.mark == '@') ||
            (is_word && is_among(t.word, " select do call execute ")) ||
            ((is_word || t.kind == T_NAME) && rules->unsafe &&
             samovar_names_have(rules->unsafe, t.hash))) {
            return true;
        }
    }
    return false;
}

/* A variable of the session is shown by queries. */
static bool is_hidden_setting(sql_text t) {
    while (next_token(&t) != T_END) {
        if (t.kind == T_MARK && t.mark == ';') {
            return next_token(&t) != T_END;
        }
        const bool is_word = t.kind == T_WORD || t.kind == T_NAME;
        if (t.kind == T_UNKNOWN ||
            (is_word &&
             is_among(t.word, " role authorization local timestamp insert_id last_insert_id "
                              "identity rand_seed1 rand_seed2 sql_log_bin profiling ")) ||
            (t.kind == T_MARK && !strchr("=,-+", t.mark)) ||
            (t.kind == T_OPERATOR && !is_among(t.word, " = - + "))) {
            return true;
        }
    }
    return false;
}

sql_statement samovar_sql_read(const char *text, size_t len, const sql_rules *rules) {
    sql_reading r = {.text = {.at = text, .end = text + len, .mysql = rules->mysql},
                     .rules = rules};
    sql_text *t = &r.text;
    while (next_token(t) == T_MARK && t->mark == '(') {
    }
    if (t->kind == T_END) {
        return (sql_statement){0}; /* libpq checks a connection with it. */
    }
    const sql_statement changes = {.effects = SQL_CHANGES | SQL_HIDES};
    if (t->kind != T_WORD) {
        return changes;
    }
    if (!rules->mysql && strcmp(t->word, "deallocate") == 0) {
        return read_deallocate(t);
    }
    const bool sets = strcmp(t->word, "set") == 0;
    if (sets || is_among(t->word, " create alter drop use ")) {
        const bool hides = sets ? is_hidden_setting(*t) : is_hidden_definition(*t, rules);
        return hides ? changes : (sql_statement){.effects = SQL_CHANGES};
    }
    if (!is_known_start(t->word, rules->mysql)) {
        return changes;
    }
    const bool needs_names = is_among(t->word, " select insert update delete with values table "
                                               "merge replace truncate ");
    r.is_show = strcmp(t->word, "show") == 0;
    r.effects = effects_of_verb(t->word);
    r.effects |= rules->mysql && (r.effects & SQL_WRITES) ? SQL_TABLES : 0;
    r.effects |= rules->mysql && is_among(t->word, " select with show ") ? SQL_SELECTS : 0;
    memcpy(r.former, t->word, sizeof r.former);
    r.effects |= effects_of_rest(&r);
    if (needs_names && (!rules->unsafe || rules->unsafe->is_full)) {
        return changes;
    }
    return (sql_statement){.effects = r.effects};
}
