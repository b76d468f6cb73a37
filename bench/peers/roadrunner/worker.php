<?php

declare(strict_types=1);

/*
 * RoadRunner's PHP side: reads requests from a pipe, calls a workload's handler and writes its answers.
 *
 * Ours, after the documentation of goridge's frames and of RoadRunner's messages, since Composer's packages cannot be
 * had here. test_worker.py beside it speaks RoadRunner's side with it; it has not been run by RoadRunner itself.
 */

namespace Samovar\Bench\RoadRunner;

require __DIR__ . '/Request.php';
require __DIR__ . '/frames.php';
require __DIR__ . '/messages.php';

/**
 * Answers requests until RoadRunner says stop, or is gone.
 *
 * @param callable(Request): array{0: int, 1: array<string, list<string>>, 2: string} $handler answers status, headers
 *     and body
 */
function serve(callable $handler): void
{
    // The pipe must hold frames alone.
    ob_start(static function (string $output): string {
        fwrite(STDERR, $output);

        return '';
    }, 1);
    while (($frame = readFrame(STDIN)) !== null) {
        [$flags, $options, $payload] = $frame;
        if ($flags & CONTROL) {
            $command = json_decode($payload, true, 8, JSON_THROW_ON_ERROR);
            if (!empty($command['stop'])) {
                return;
            }
            writeFrame(STDOUT, CONTROL, [], json_encode(['pid' => getmypid()], JSON_THROW_ON_ERROR));
            continue;
        }
        $head = substr($payload, 0, $options[0]);
        // RoadRunner's versions differ in how they write the head; the answer is written in the same way.
        $json = $head[0] === '{';
        [$status, $headers, $body] = $handler(readRequest($head, substr($payload, $options[0]), $json));
        $answer = writeResponse($status, $headers, $json);
        writeFrame(STDOUT, $json ? CODEC_JSON : CODEC_PROTO, [strlen($answer)], $answer . $body);
    }
}
