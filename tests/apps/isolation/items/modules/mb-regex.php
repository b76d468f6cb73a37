<?php

/** The encoding and options of multibyte regular expressions. */

declare(strict_types=1);

return [
    'leak' => static fn () => [mb_regex_encoding('SJIS'), mb_regex_set_options('i')],
    'look' => static fn () => [mb_regex_encoding(), mb_regex_set_options()],
    'resident' => 'reset',
    'needs' => ['mbstring'],
];
