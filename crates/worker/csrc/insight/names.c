/* Texts of a report: truncated to the maximum length, and valid UTF-8, because an invalid text
 * would make the rest of the report unreadable. */
#include "insight/names.h"
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

/* Returns the number of ASCII bytes at the start of a text, a multiple of 8. */
static size_t ascii_prefix(const char *text, size_t len) {
    size_t at = 0;
    for (uint64_t part; at + sizeof part <= len; at += sizeof part) {
        memcpy(&part, text + at, sizeof part);
        if (part & 0x8080808080808080u) {
            break;
        }
    }
    return at;
}

size_t samovar_utf8_copy(char *to, size_t room, const char *text, size_t len) {
    const unsigned char *from = (const unsigned char *)text;
    size_t written = ascii_prefix(text, len < room ? len : room);
    memcpy(to, text, written);
    for (size_t at = written; at < len;) {
        const size_t valid = character(from + at, len - at);
        const size_t bytes = valid ? valid : 1;
        if (written + bytes > room) {
            break;
        }
        if (valid) {
            memcpy(to + written, text + at, bytes);
        } else {
            to[written] = '?';
        }
        written += bytes;
        at += bytes;
    }
    return written;
}

void samovar_short_name(short_name *to, const char *text, size_t len) {
    to->len = (uint8_t)samovar_utf8_copy(to->text, NAME_BYTES, text, len);
}
