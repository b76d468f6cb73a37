<?php

declare(strict_types=1);

namespace Isolation;

/**
 * All generators of random numbers, one per line, named as in docs/guide/checkpoint-model.md. The
 * test looks for the name before the colon in that page. Each value has 60 bits or more.
 *
 * @return array<string, callable(Boot): mixed>
 */
function generators(): array
{
    return [
        'mt_rand' => static fn () => mt_rand() . ' ' . mt_rand(),
        'mt_rand: a range' => static fn () => mt_rand(0, PHP_INT_MAX),
        'rand' => static fn () => rand() . ' ' . rand(),
        'shuffle' => static fn () => shuffled(range(1, 25)),
        'str_shuffle' => static fn () => str_shuffle('abcdefghijklmnopqrstuvwxyz'),
        'array_rand' => static fn () => implode(' ', array_rand(range(0, 255), 32)),
        'lcg_value' => static fn () => lcg_value() . ' ' . lcg_value() . ' ' . lcg_value(),
        'uniqid' => static fn () => uniqid('', true),
        'random_int' => static fn () => random_int(PHP_INT_MIN, PHP_INT_MAX),
        'random_bytes' => static fn () => bin2hex(random_bytes(16)),
        'Random\Engine\Secure' => static fn () => bin2hex((new \Random\Engine\Secure())->generate()),
        'Random\Engine\Mt19937: of boot' => static fn (Boot $boot) => drawn($boot->mt),
        'Random\Engine\Mt19937: of the request' => static fn () => drawn(new \Random\Engine\Mt19937()),
        'PcgOneseq128XslRr64' => static fn (Boot $boot) => drawn($boot->pcg),
        'Xoshiro256StarStar' => static fn (Boot $boot) => drawn($boot->xoshiro),
        'Xoshiro256StarStar: a Randomizer' => static fn (Boot $boot) => bin2hex($boot->randomizer->getBytes(16)),
        'session ids' => static fn () => session_create_id(),
        'openssl_random_pseudo_bytes' => static fn () => bin2hex(openssl_random_pseudo_bytes(16)),
        'libsodium' => static fn () => bin2hex(sodium_crypto_secretbox_keygen()),
        'gmp_random_bits' => static fn () => gmp_strval(gmp_random_bits(128)),
        'randomblob()' => static fn (Boot $boot) => $boot->query('SELECT hex(randomblob(16))'),
        'random()' => static fn (Boot $boot) => $boot->query('SELECT random()'),
        'libc: rand' => static fn (Boot $boot) => $boot->libc->rand() . ' ' . $boot->libc->rand(),
        'libc: random' => static fn (Boot $boot) => $boot->libc->random() . ' ' . $boot->libc->random(),
        'libc: drand48' => static fn (Boot $boot) => $boot->libc->lrand48() . ' ' . $boot->libc->lrand48(),
        'libc: math:random of XSLT' => static fn (Boot $boot) => $boot->xslt->transformToXml($boot->document),
        'libgcrypt' => static fn (Boot $boot) => $boot->bytes($boot->gcrypt),
        'GnuTLS' => static fn (Boot $boot) => $boot->bytes($boot->gnutls),
    ];
}

/**
 * Generators that cost more than all others together. The tests call them only occasionally.
 *
 * @return array<string, callable(Boot): mixed>
 */
function dear_generators(): array
{
    return [
        'password_hash' => static fn () => substr(password_hash('tea', PASSWORD_BCRYPT, ['cost' => 4]), 7, 22),
        'OpenSSL: EC key' => static fn () => key_of(OPENSSL_KEYTYPE_EC)['ec']['x'],
        'OpenSSL: RSA key' => static fn () => key_of(OPENSSL_KEYTYPE_RSA)['rsa']['n'],
        'curl: boundary' => boundary(...),
    ];
}

function drawn(\Random\Engine $engine): string
{
    return bin2hex($engine->generate() . $engine->generate());
}

/** @param list<int> $list */
function shuffled(array $list): string
{
    shuffle($list);

    return implode(' ', $list);
}

/** @return array<string, array<string, string>> */
function key_of(int $kind): array
{
    $key = openssl_pkey_new(['private_key_type' => $kind, 'private_key_bits' => 1024, 'curve_name' => 'prime256v1']);
    $details = openssl_pkey_get_details($key);

    return array_map(static fn ($part) => \is_array($part) ? array_map(bin2hex(...), $part) : [], $details);
}

/** Returns the boundary of a multipart form that curl sends to a socket of this process. */
function boundary(): string
{
    $server = stream_socket_server('tcp://127.0.0.1:0');
    $curl = curl_init('http://' . stream_socket_get_name($server, false));
    curl_setopt_array($curl, [CURLOPT_POSTFIELDS => ['tea' => 'green'], CURLOPT_TIMEOUT => 10]);
    curl_multi_add_handle($multi = curl_multi_init(), $curl);
    for ($head = '', $client = null; !preg_match('/boundary=-*(\w+)/', $head, $found);) {
        curl_multi_exec($multi, $running);
        $client = $client ?: @stream_socket_accept($server, 0);
        $head .= $client && stream_set_blocking($client, false) ? fread($client, 4096) : '';
    }

    return $found[1];
}
