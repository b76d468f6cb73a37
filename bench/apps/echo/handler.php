<?php

declare(strict_types=1);

namespace Samovar\Bench\Echoing;

// Request headers that the handler reads, in lower case.
const HEADERS = ['content-type', 'accept', 'accept-language', 'authorization', 'user-agent', 'x-request-id'];

/**
 * The work of a small API: decodes the body, reads the headers, and returns facts of both as JSON.
 *
 * @param array<string, string|null> $headers the headers in HEADERS
 *
 * @return array{0: int, 1: string} status and body
 */
function answer(string $body, array $headers): array
{
    $fields = json_decode($body, true, 16);
    if (!is_array($fields) || !str_starts_with($headers['content-type'] ?? '', 'application/json')) {
        return [400, '{"error":"JSON is expected"}'];
    }
    $language = strtok($headers['accept-language'] ?? 'en', ',;');

    return [200, json_encode([
        'fields' => count($fields),
        'authorized' => str_starts_with($headers['authorization'] ?? '', 'Bearer '),
        'language' => $language,
        'json' => str_contains($headers['accept'] ?? '*/*', 'json'),
        'agent' => $headers['user-agent'],
        'request' => $headers['x-request-id'],
        'data' => $fields,
    ], JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES)];
}

/**
 * The headers, from the superglobals.
 *
 * @return array<string, string|null>
 */
function headersOfServer(array $server): array
{
    return [
        'content-type' => $server['CONTENT_TYPE'] ?? null,
        'accept' => $server['HTTP_ACCEPT'] ?? null,
        'accept-language' => $server['HTTP_ACCEPT_LANGUAGE'] ?? null,
        'authorization' => $server['HTTP_AUTHORIZATION'] ?? null,
        'user-agent' => $server['HTTP_USER_AGENT'] ?? null,
        'x-request-id' => $server['HTTP_X_REQUEST_ID'] ?? null,
    ];
}

/** Reads from and writes to superglobals. */
function respond(string $body): void
{
    [$status, $json] = answer($body, headersOfServer($_SERVER));
    http_response_code($status);
    header('Content-Type: application/json');
    echo $json;
}
