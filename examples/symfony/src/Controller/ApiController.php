<?php

declare(strict_types=1);

namespace App\Controller;

use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\Exception\JsonException;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Routing\Annotation\Route;

#[Route('/api', name: 'api_')]
final class ApiController extends AbstractController
{
    #[Route('/square/{number<-?\d{1,9}>}', name: 'square', methods: ['GET'])]
    public function square(int $number): JsonResponse
    {
        return $this->json(['number' => $number, 'square' => $number ** 2]);
    }

    /** Returns the request as the framework parsed it. */
    #[Route('/echo', name: 'echo', methods: ['POST', 'PUT', 'PATCH', 'DELETE'])]
    public function echo(Request $request): JsonResponse
    {
        try {
            $body = $request->toArray();
        } catch (JsonException $error) {
            return $this->json(['error' => $error->getMessage()], Response::HTTP_BAD_REQUEST);
        }

        return $this->json([
            'method' => $request->getMethod(),
            'query' => $request->query->all(),
            'body' => $body,
        ], headers: ['X-Fields' => (string) count($body)]);
    }

    /** A session for API clients: it stores the client's name and counts its requests. */
    #[Route('/session', name: 'session', methods: ['GET', 'PUT'])]
    public function session(Request $request): JsonResponse
    {
        $session = $request->getSession();
        if ($request->isMethod('PUT')) {
            $session->set('name', (string) ($request->toArray()['name'] ?? ''));
        }
        $session->set('asked', $session->get('asked', 0) + 1);

        return $this->json(['name' => $session->get('name'), 'asked' => $session->get('asked')]);
    }
}
