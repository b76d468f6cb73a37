/* Writes the loads as text, for the reader in the server (crates/profile). The fields of a line
 * are separated by tabs; no text contains a tab or a newline. */
#include "loads/loads.h"
#include "insight/request_accounting.h"
#include "sapi/sapi.h"
#include <inttypes.h>
#include <stdarg.h>

typedef struct {
    char *at;
    size_t len, room;
} writing;

static void put(writing *to, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const size_t room = to->room - to->len;
    const int len = vsnprintf(to->at + to->len, room, format, values);
    va_end(values);
    to->len += len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

static void put_text(writing *to, const char *text, size_t len) {
    put(to, "\t");
    for (size_t i = 0; i < len && to->len < to->room - 1; i++) {
        const unsigned char c = (unsigned char)text[i];
        to->at[to->len++] = c < ' ' || c == 127 ? ' ' : (char)c;
    }
}

static void put_str(writing *to, const samovar_head *head, samovar_str s) {
    put_text(to, samovar_text(head, s), s.off ? s.len : 0);
}

static void put_request(writing *to, const samovar_head *head) {
    put(to, "q");
    put_str(to, head, head->method);
    put_str(to, head, head->target);
    const request_accounting_state *l = samovar_request_accounting;
    put_text(to, l ? l->route.text : "", l ? l->route.len : 0);
    put(to, "\n");
}

static void put_cost(writing *to, const load_cost *cost) {
    put(to, "\t%" PRId64 "\t%" PRId64 "\t%" PRId64, cost->wall, cost->cpu, cost->mem);
}

static const char *kind_of(const load_table *t, const samovar_head *head) {
    return t->is_script                         ? "script"
           : head                               ? "request"
           : samovar_place == SAMOVAR_REHEARSES ? "rehearsal"
                                                : "boot";
}

void samovar_loads_write(load_table *t, const samovar_head *head, uint32_t looks,
                         uint32_t classes) {
    writing to = {.at = t->report, .room = t->report_room};
    put(&to, "samovar-loads 1\nk\t%s\t%" PRIu64 "\t%u\t%u\t%u\n", kind_of(t, head), t->boot, looks,
        classes, t->lost);
    if (head) {
        put_request(&to, head);
    }
    for (uint32_t i = 0; i < t->loads; i++) {
        const load *l = &t->load[i];
        put(&to, "l\t%c\t%d\t%d", l->kind, l->parent == LOADS_NONE ? -1 : (int)l->parent,
            (l->was_compiled ? 1 : 0) | (l->is_once ? 2 : 0));
        put_cost(&to, &l->all);
        put_cost(&to, &l->compiling);
        put(&to, "\t%u", l->line);
        put_text(&to, t->text + l->place, l->place_len);
        put_text(&to, t->text + l->name, l->name_len);
        put(&to, "\t%" PRId64 "\n", l->begun.wall - t->load[0].begun.wall);
    }
    put(&to, "end\n");
    t->report_len = to.len;
}
