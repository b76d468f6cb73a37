<?php

declare(strict_types=1);

/*
 * Converts Samovar's request and response objects to those of Symfony's HttpFoundation, for
 * workloads whose framework uses it.
 */

namespace Samovar\Bench\Foundation;

use Samovar\Request;
use Samovar\Response;
use Symfony\Component\HttpFoundation;

function request(Request $request): HttpFoundation\Request
{
    return new HttpFoundation\Request(
        $request->query(),
        $request->form(),
        [],
        $request->cookies(),
        $request->files(),
        $request->server(),
    );
}

function response(HttpFoundation\Response $response): Response
{
    return new Response($response->getContent(), $response->getStatusCode(), $response->headers->allPreserveCase());
}
