/* .user.ini files, from the document root down to the script's folder. */
#ifndef SAMOVAR_SAPI_USER_INI_H
#define SAMOVAR_SAPI_USER_INI_H

#include <stddef.h>

void samovar_user_ini_activate(const char *root, size_t root_len, const char *script);

#endif
