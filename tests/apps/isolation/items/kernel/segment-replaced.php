<?php

/**
 * A segment of shared memory that was attached above the checkpoint, and that a request lets go of
 * for another one.
 */

declare(strict_types=1);

namespace Isolation\Items;

final class Segments
{
    private const BYTES = 8192;

    public static ?\SysvSharedMemory $other = null;

    /** The segment is destroyed when the last process detaches it. */
    public static function make(string $name, string $tea): \SysvSharedMemory
    {
        $segment = shm_attach(ftok(\Isolation\lines($name), 's'), self::BYTES);
        shm_put_var($segment, 1, $tea);
        shm_remove($segment);

        return $segment;
    }
}

return [
    'boot' => static fn () => Segments::make('segment', 'green'),
    'leak' => static function (\SysvSharedMemory $segment): void {
        shm_detach($segment);
        Segments::$other = Segments::make('other segment', 'dirt');
    },
    'look' => static fn (\SysvSharedMemory $segment) => shm_get_var($segment, 1),
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['sysvshm'],
];
