/* Checks whether a statement leaves the session of a database unchanged. connection_protocols.c
 * checks each statement that a request sends on a connection made above the checkpoint.
 *
 * It is a list of statements known to be safe. Text that is not understood, such as a comment or
 * a second statement, counts as unsafe. Effects of stored functions and triggers are not seen. */
#define _GNU_SOURCE
#include "outside/sql.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_BYTES_MAX = 32 };

typedef struct {
    const char *at, *end;
    bool mysql;
    char word[WORD_BYTES_MAX], former[WORD_BYTES_MAX]; /* lower case, truncated */
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

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void begin_word(sql_text *t) {
    memcpy(t->former, t->word, sizeof t->former);
    t->word[0] = 0;
}

static void add_to_word(sql_text *t, char c) {
    const size_t len = strlen(t->word);
    if (len + 1 < sizeof t->word) {
        t->word[len] = (char)tolower((unsigned char)c);
        t->word[len + 1] = 0;
    }
}

/* Moves past the closing quote. Returns false if there is none. */
static bool skip_quoted(sql_text *t, char quote, bool with_backslash) {
    for (t->at++; t->at < t->end; t->at++) {
        if (with_backslash && *t->at == '\\') {
            t->at++;
        } else if (*t->at == quote) {
            t->at++;
            if (t->at == t->end || *t->at != quote) {
                return true;
            }
        }
    }
    return false;
}

/* A quoted name may be the name of a function. */
static bool read_quoted_name(sql_text *t, char quote) {
    begin_word(t);
    const char *from = t->at + 1;
    if (!skip_quoted(t, quote, false)) {
        return false;
    }
    for (; from < t->at - 1; from++) {
        add_to_word(t, *from);
    }
    return true;
}

static void read_word(sql_text *t) {
    begin_word(t);
    for (; t->at < t->end && is_word_char(*t->at); t->at++) {
        add_to_word(t, *t->at);
    }
}

/* last_insert_id(n) sets the value; without an argument it only reads it. */
static bool is_called_without_argument(const sql_text *t) {
    return t->end - t->at >= 2 && t->at[0] == '(' && t->at[1] == ')';
}

static bool changes_session(const sql_text *t) {
    const char *const prefixes[] = {"pg_advisory", "pg_try_advisory", "dblink"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(t->word, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    if (strcmp(t->word, "into") == 0) { /* SELECT … INTO makes a table or sets a variable. */
        return !is_among(t->former, " insert replace merge ignore delayed low_priority "
                                    "high_priority ");
    }
    if (strcmp(t->word, "last_insert_id") == 0) {
        return !is_called_without_argument(t);
    }
    return is_among(t->word, " get_lock release_lock release_all_locks set_config setseed "
                             "query_to_xml atomic temp temporary ");
}

static bool is_known_start(const sql_text *t) {
    return is_among(t->word, " select insert update delete replace with values merge show describe "
                             "desc start begin commit end rollback abort savepoint release "
                             "truncate ") ||
           (!t->mysql && strcmp(t->word, "deallocate") == 0);
}

/* Reads one token. Returns false if it is not understood, or changes the session. */
static bool next_token(sql_text *t) {
    const char c = *t->at, next = t->at + 1 < t->end ? t->at[1] : 0;
    if (c == '\'') {
        const bool escapes = t->mysql || ((t->at[-1] | 0x20) == 'e' && strcmp(t->word, "e") == 0);
        return skip_quoted(t, c, escapes);
    }
    if (c == '"' && t->mysql) {
        return skip_quoted(t, c, true);
    }
    if (c == '"' || (c == '`' && t->mysql)) {
        return read_quoted_name(t, c) && !changes_session(t);
    }
    if (c == '$' && !t->mysql && !isdigit((unsigned char)next)) {
        return false; /* a dollar-quoted string */
    }
    if (is_word_char(c)) {
        read_word(t);
        return !changes_session(t);
    }
    if (c == '@' && t->mysql) {
        t->at += 2; /* @@name reads; @name may set */
        return next == '@';
    }
    if (c == ';') {
        while (++t->at < t->end && (isspace((unsigned char)*t->at) || *t->at == 0)) {
        }
        return t->at == t->end;
    }
    const bool comment =
        (c == '-' && next == '-') || (c == '/' && next == '*') || (c == '#' && t->mysql);
    t->at++;
    return !comment;
}

bool samovar_sql_is_plain(const char *text, size_t len, bool mysql) {
    sql_text t = {.at = text, .end = text + len, .mysql = mysql};
    while (t.at < t.end && (isspace((unsigned char)*t.at) || *t.at == '(')) {
        t.at++;
    }
    read_word(&t);
    if (!is_known_start(&t)) {
        return t.at == t.end && t.word[0] == 0; /* libpq checks a connection with it */
    }
    while (t.at < t.end) {
        if (!next_token(&t)) {
            return false;
        }
    }
    return true;
}
