<?php

declare(strict_types=1);

/*
 * Heads of requests and responses, as JSON or as messages of protobuf (http.v1 of RoadRunner's API):
 *
 *   Request      1 remote address, 2 protocol, 3 method, 4 URI, 5 headers, 6 cookies, 7 query
 *   Response     1 status, 2 headers
 *   HeaderValue  1 values
 *
 * A map is a repeated message of 1 key and 2 value.
 */

namespace Samovar\Bench\RoadRunner;

use RuntimeException;

// Value types in protobuf's encoding.
const VARINT = 0;
const BYTES = 2;

function readRequest(string $head, string $body, bool $json): Request
{
    if (!$json) {
        return readRequestMessage($head, $body);
    }
    $fields = json_decode($head, true, 16, JSON_THROW_ON_ERROR);

    return new Request(
        $fields['method'],
        $fields['uri'],
        $fields['protocol'],
        $fields['remoteAddr'],
        $fields['headers'] ?? [],
        $fields['cookies'] ?? [],
        $fields['rawQuery'],
        $body,
    );
}

/** @param array<string, list<string>> $headers */
function writeResponse(int $status, array $headers, bool $json): string
{
    if ($json) {
        return json_encode(['status' => $status, 'headers' => $headers ?: (object) []], JSON_THROW_ON_ERROR);
    }
    $message = varint(1 << 3 | VARINT) . varint($status);
    foreach ($headers as $name => $values) {
        $list = implode('', array_map(static fn (string $value): string => bytesField(1, $value), $values));
        $message .= bytesField(2, bytesField(1, $name) . bytesField(2, $list));
    }

    return $message;
}

function readRequestMessage(string $head, string $body): Request
{
    $text = [];
    $maps = [5 => [], 6 => []];
    foreach (fields($head) as [$number, $value]) {
        if (isset($maps[$number])) {
            [$name, $values] = mapEntry($value);
            $maps[$number][$name] = $values;
        } else {
            $text[$number] = $value;
        }
    }

    return new Request(
        $text[3] ?? 'GET',
        $text[4] ?? '/',
        $text[2] ?? '',
        $text[1] ?? '',
        $maps[5],
        array_map(static fn (array $values): string => implode(',', $values), $maps[6]),
        $text[7] ?? '',
        $body,
    );
}

/** @return array{0: string, 1: list<string>} a name and its values */
function mapEntry(string $message): array
{
    $name = '';
    $values = [];
    foreach (fields($message) as [$number, $value]) {
        if ($number === 1) {
            $name = $value;
        } else {
            $values = array_column(fields($value), 1);
        }
    }

    return [$name, $values];
}

/** @return list<array{0: int, 1: string|int}> numbers and values of a message's fields */
function fields(string $message): array
{
    $fields = [];
    for ($at = 0, $end = strlen($message); $at < $end;) {
        $key = readVarint($message, $at);
        $value = readVarint($message, $at);
        if (($key & 7) === BYTES) {
            $length = $value;
            $value = substr($message, $at, $length);
            $at += $length;
        } elseif (($key & 7) !== VARINT) {
            throw new RuntimeException('a field of a kind that no message of RoadRunner has');
        }
        $fields[] = [$key >> 3, $value];
    }

    return $fields;
}

function readVarint(string $message, int &$at): int
{
    $value = $shift = 0;
    do {
        $byte = ord($message[$at++]);
        $value |= ($byte & 0x7F) << $shift;
        $shift += 7;
    } while ($byte & 0x80);

    return $value;
}

function varint(int $value): string
{
    $text = '';
    for (; $value > 0x7F; $value >>= 7) {
        $text .= chr($value & 0x7F | 0x80);
    }

    return $text . chr($value);
}

function bytesField(int $number, string $value): string
{
    return varint($number << 3 | BYTES) . varint(strlen($value)) . $value;
}
