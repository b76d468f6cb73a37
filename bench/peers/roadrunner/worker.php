<?php

declare(strict_types=1);

/*
 * RoadRunner's PHP side: reads requests from a pipe, calls a workload's handler and writes its
 * responses.
 *
 * Written for this repository, after the documentation of goridge's frames and of RoadRunner's
 * messages, because Composer's packages are not available here. test_worker.py in this folder acts
 * as RoadRunner's side; this file has not been run by RoadRunner itself.
 */

namespace Samovar\Bench\RoadRunner;

require __DIR__ . '/Request.php';
require __DIR__ . '/frames.php';
require __DIR__ . '/messages.php';

/**
 * Serves requests until RoadRunner sends a stop or closes the pipe.
 *
 * @param callable(Request): array{0: int, 1: array<string, list<string>>, 2: string} $handler
 *     returns status, headers and body
 */
function serve(callable $handler): void
{
    // The pipe may contain only frames.
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
        // RoadRunner's versions differ in the format of the head; the response uses the format of
        // the request.
        $json = $head[0] === '{';
        [$status, $headers, $body] = $handler(readRequest($head, substr($payload, $options[0]), $json));
        $answer = writeResponse($status, $headers, $json);
        writeFrame(STDOUT, $json ? CODEC_JSON : CODEC_PROTO, [strlen($answer)], $answer . $body);
    }
}
