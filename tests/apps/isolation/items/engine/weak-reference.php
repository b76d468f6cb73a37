<?php

/** The last strong reference to an object created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): stdClass {
        $holder = (object) ['held' => new stdClass()];
        $holder->weak = WeakReference::create($holder->held);

        return $holder;
    },
    'leak' => static fn (stdClass $holder) => $holder->held = null,
    'look' => static fn (stdClass $holder) => $holder->weak->get() !== null,
    'resident' => 'kept',
];
