/* The line of a source file that declares a name. */
#ifndef SAMOVAR_CENSUS_DECLARED_H
#define SAMOVAR_CENSUS_DECLARED_H

#include <stddef.h>
#include <stdint.h>

/* The first line between the two that has the word `static` and the variable at the end of `name`
 * (`A::$b`); `line` where there is none, or the file cannot be read. */
uint32_t samovar_declared_line(const char *file, const char *name, uint32_t line,
                               uint32_t line_end);

#endif
