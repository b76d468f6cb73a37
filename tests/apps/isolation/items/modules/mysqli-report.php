<?php

/** What mysqli does about errors. */

declare(strict_types=1);

return [
    'leak' => static fn () => mysqli_report(MYSQLI_REPORT_OFF),
    'look' => static fn () => (new mysqli_driver())->report_mode,
    'resident' => 'kept',
    'needs' => ['mysqli'],
];
