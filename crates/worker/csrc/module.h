/* The PHP extension "samovar". */
#ifndef SAMOVAR_MODULE_H
#define SAMOVAR_MODULE_H

#include <php.h>

extern zend_module_entry samovar_module_entry;

#endif
