<?php

/** The folder of translations. */

declare(strict_types=1);

return [
    'boot' => static fn () => Isolation\subfolder('translations'),
    'leak' => static fn (string $folder) => [bindtextdomain('dirt', $folder), textdomain('dirt')],
    'look' => static fn () => textdomain(null),
    'resident' => 'reset',
    'needs' => ['gettext'],
];
