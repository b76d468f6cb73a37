<?php

declare(strict_types=1);

/*
 * Goridge's frames: a header of 12 bytes, options of 4 bytes each, a payload.
 *
 *   byte 0      version (4 bits), length of header and options in words of 4 bytes (4 bits)
 *   byte 1      flags: codec, control, error
 *   bytes 2-5   length of the payload, little endian
 *   bytes 6-9   CRC-32 of bytes 0-5, little endian
 *   bytes 10-11 streams, not used here
 *
 * A request or response has one option: the length of the head, with which the payload begins.
 */

namespace Samovar\Bench\RoadRunner;

use RuntimeException;

const VERSION = 1;
const HEADER_BYTES = 12;
const HEADER_WORDS = 3;
const CONTROL = 0x01;
const CODEC_JSON = 0x08;
const CODEC_PROTO = 0x80;

/**
 * @param resource $pipe
 *
 * @return array{0: int, 1: list<int>, 2: string}|null flags, options and payload; null at the
 * pipe's end
 */
function readFrame($pipe): ?array
{
    $header = readExactly($pipe, HEADER_BYTES);
    if ($header === null) {
        return null;
    }
    ['begin' => $begin, 'flags' => $flags, 'length' => $length, 'crc' => $crc] =
        unpack('Cbegin/Cflags/Vlength/Vcrc', $header);
    if ($begin >> 4 !== VERSION || crc32(substr($header, 0, 6)) !== $crc) {
        throw new RuntimeException('not a frame of goridge: ' . bin2hex($header));
    }
    $optionBytes = (($begin & 0x0F) - HEADER_WORDS) * 4;
    $rest = $optionBytes + $length === 0 ? '' : readExactly($pipe, $optionBytes + $length);
    if ($rest === null) {
        throw new RuntimeException('the pipe ended within a frame');
    }
    $options = $optionBytes === 0 ? [] : array_values(unpack('V*', substr($rest, 0, $optionBytes)));

    return [$flags, $options, substr($rest, $optionBytes)];
}

/**
 * @param resource $pipe
 * @param list<int> $options
 */
function writeFrame($pipe, int $flags, array $options, string $payload): void
{
    $header = pack('CCV', VERSION << 4 | HEADER_WORDS + count($options), $flags, strlen($payload));
    $frame = $header . pack('Vv', crc32($header), 0) . pack('V*', ...$options) . $payload;
    for ($written = 0; $written < strlen($frame); $written += $bytes) {
        $bytes = fwrite($pipe, $written === 0 ? $frame : substr($frame, $written));
        if ($bytes === false || $bytes === 0) {
            throw new RuntimeException('RoadRunner does not read any more');
        }
    }
}

/**
 * @param resource $pipe
 *
 * @return string|null null at the end of the pipe
 */
function readExactly($pipe, int $bytes): ?string
{
    $text = '';
    while (strlen($text) < $bytes) {
        $piece = fread($pipe, $bytes - strlen($text));
        if ($piece === false || $piece === '') {
            return null;
        }
        $text .= $piece;
    }

    return $text;
}
