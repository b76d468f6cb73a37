<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Laravel\Octane\Contracts\Client;
use Laravel\Octane\Octane;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;
use Samovar\Runtime\Sapi;
use Samovar\Runtime\Symfony\LaravelRoute;
use Symfony\Component\HttpFoundation\Response;

/**
 * Octane's worker → Samovar: superglobals in, header() and echo out. Does not implement
 * ServesStaticFiles, because the front serves the files of public/.
 */
final class SamovarClient implements Client
{
    /** The current request. The router stores the matched route in it. */
    private ?Request $request = null;

    /** @return array{Request, RequestContext} */
    public function marshalRequest(RequestContext $context): array
    {
        $this->request = Request::capture();

        return [$this->request, $context];
    }

    /** Sends the complete response. The client does not wait for Octane's work after it. */
    public function respond(RequestContext $context, OctaneResponse $octaneResponse): void
    {
        $this->nameRoute();
        $response = $octaneResponse->response;
        $printed = (string) $octaneResponse->outputBuffer;
        if ($printed !== '') {
            $response->headers->remove('Content-Length');
        }
        $response->sendHeaders();
        echo $printed;
        $response->sendContent();
        Sapi::finish();
    }

    public function error(\Throwable $e, Application $app, Request $request, RequestContext $context): void
    {
        $this->nameRoute();
        $text = Octane::formatExceptionForClient($e, (bool) $app->make('config')->get('app.debug'));
        (new Response($text, Response::HTTP_INTERNAL_SERVER_ERROR, ['Content-Type' => 'text/plain']))->send();
    }

    private function nameRoute(): void
    {
        if ($this->request !== null) {
            LaravelRoute::tell($this->request);
        }
        $this->request = null;
    }
}
