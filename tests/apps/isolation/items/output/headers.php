<?php

/** Headers, a cookie and a status. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        header('X-Leak: header');
        setcookie('dirt', '1');
        http_response_code(203);
    },
    'look' => static fn () => [preg_grep('/dirt|leak/i', headers_list()), http_response_code()],
    'resident' => 'reset',
];
