<?php

/** A calendar and a break iterator created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): array {
        $words = IntlBreakIterator::createWordInstance('en');
        $words->setText('green tea, black tea');
        $calendar = IntlCalendar::createInstance('UTC', 'en');
        $calendar->setTime(0.0);

        return [$words, $calendar];
    },
    'leak' => static fn (array $two) => [$two[0]->next(3), $two[1]->add(IntlCalendar::FIELD_YEAR, 7)],
    'look' => static fn (array $two) => [$two[0]->current(), $two[1]->getTime()],
    'resident' => 'kept',
    'needs' => ['intl'],
];
