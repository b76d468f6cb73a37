<?php

/** Settings of many extensions. */

declare(strict_types=1);

const MANY = [
    'serialize_precision' => '5',
    'display_errors' => 'stderr',
    'default_charset' => 'latin1',
    'default_socket_timeout' => '7',
    'auto_detect_line_endings' => '1',
    'pcre.backtrack_limit' => '99',
    'pcre.jit' => '0',
    'intl.default_locale' => 'tr_TR',
    'mbstring.strict_detection' => '1',
    'session.gc_divisor' => '77',
    'date.default_latitude' => '7',
    'zend.assertions' => '0',
    'unserialize_max_depth' => '7',
    'arg_separator.output' => '&dirt;',
    'url_rewriter.tags' => 'a=dirt',
    'highlight.comment' => '#000',
    'log_errors_max_len' => '77',
    'sendmail_from' => 'dirt@example.org',
];

return [
    'leak' => static function (): void {
        foreach (MANY as $name => $value) {
            @ini_set($name, $value);
        }
    },
    'look' => static fn () => array_map(ini_get(...), array_keys(MANY)),
    'resident' => 'reset',
];
