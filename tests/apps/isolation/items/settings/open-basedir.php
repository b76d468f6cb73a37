<?php

/** The folders that PHP may access. */

declare(strict_types=1);

return [
    'leak' => static fn () => ini_set('open_basedir', Isolation\folder() . ':' . dirname(__DIR__, 2) . ':/proc'),
    'look' => static fn () => [ini_get('open_basedir'), @is_dir('/usr')],
    'resident' => 'reset',
];
