<?php

/** A date that can change, and a period that was started. */

declare(strict_types=1);

return [
    'boot' => static fn () => new DateTime('2001-01-01', new DateTimeZone('Europe/Berlin')),
    'leak' => static fn (DateTime $date) => $date->modify('+77 days')->setTimezone(new DateTimeZone('Asia/Tokyo')),
    'look' => static fn (DateTime $date) => $date->format('c e'),
    'resident' => 'kept',
];
