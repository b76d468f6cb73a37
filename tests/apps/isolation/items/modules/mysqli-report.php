<?php

/** The error reporting mode of mysqli. */

declare(strict_types=1);

return [
    'leak' => static fn () => mysqli_report(MYSQLI_REPORT_OFF),
    'look' => static fn () => (new mysqli_driver())->report_mode,
    'resident' => 'reset',
    'needs' => ['mysqli'],
];
