<?php

/** A function that is declared at run time. */

declare(strict_types=1);

return [
    'leak' => static fn () => eval('function isolation_dirt(): void {}'),
    'look' => static fn () => [function_exists('isolation_dirt'), count(get_defined_functions()['user'])],
    'resident' => 'kept',
];
