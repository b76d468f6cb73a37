<?php

/** Options of all LDAP connections. */

declare(strict_types=1);

return [
    'leak' => static fn () => ldap_set_option(null, LDAP_OPT_TIMELIMIT, 77),
    'look' => static function (): int {
        ldap_get_option(ldap_connect('ldap://127.0.0.1:1'), LDAP_OPT_TIMELIMIT, $seconds);

        return $seconds;
    },
    'resident' => 'kept',
    'needs' => ['ldap'],
];
