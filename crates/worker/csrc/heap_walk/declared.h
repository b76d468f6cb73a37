/* Finds the line of a source file that declares a name. */
#ifndef SAMOVAR_HEAP_WALK_DECLARED_H
#define SAMOVAR_HEAP_WALK_DECLARED_H

#include <stddef.h>
#include <stdint.h>

/* Returns the first line from `line` to `line_end` that has the word `static` and the variable
 * at the end of `name` (`A::$b`). Returns `line` if there is none, or if the file cannot be
 * read. */
uint32_t samovar_declared_line(const char *file, const char *name, uint32_t line,
                               uint32_t line_end);

#endif
