/* Texts of a report: truncated to the maximum length, and valid UTF-8, because an invalid text
 * would make the rest of the report unreadable. */
#include "insight/request_accounting.h"
#include <string.h>

/* Returns the number of bytes of the character at `at`. 0: it is invalid (RFC 3629: no overlong
 * forms, no surrogates). */
static size_t character(const unsigned char *at, size_t left) {
    const unsigned char first = at[0];
    if (first < 0x80) {
        return 1;
    }
    const size_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || len > left) {
        return 0;
    }
    const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if (at[i] < 0x80 || at[i] > 0xbf) {
            return 0;
        }
    }
    return len;
}

void samovar_short_name(short_name *to, const char *text, size_t len) {
    const unsigned char *from = (const unsigned char *)text;
    to->len = 0;
    for (size_t at = 0; at < len;) {
        const size_t valid = character(from + at, len - at);
        const size_t bytes = valid ? valid : 1;
        if (to->len + bytes > NAME_BYTES) {
            return;
        }
        if (valid) {
            memcpy(to->text + to->len, text + at, bytes);
        } else {
            to->text[to->len] = '?';
        }
        to->len = (uint8_t)(to->len + bytes);
        at += bytes;
    }
}
