<?php

/** Computes for about 10 ms per job. */

declare(strict_types=1);

Samovar\consume(static function (Samovar\Job ...$jobs): void {
    foreach ($jobs as $ignored) {
        $end = hrtime(true) + 10_000_000;
        while (hrtime(true) < $end) {
            md5('work');
        }
    }
});
