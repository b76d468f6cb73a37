<?php

/** Queues of SPL created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): array {
        $queues = [new SplPriorityQueue(), new SplMinHeap(), new SplQueue()];
        $queues[0]->insert('green', 1);
        $queues[1]->insert('black');
        $queues[2]->enqueue('white');

        return $queues;
    },
    'leak' => static fn (array $of) => [$of[0]->extract(), $of[1]->extract(), $of[2]->dequeue()],
    'look' => static fn (array $of) => array_map(count(...), $of),
    'resident' => 'kept',
];
