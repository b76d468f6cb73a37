<?php

/** The substitute for a character that an encoding lacks. */

declare(strict_types=1);

return [
    'leak' => static fn () => mb_substitute_character('entity'),
    'look' => static fn () => mb_substitute_character(),
    'resident' => 'reset',
    'needs' => ['mbstring'],
];
