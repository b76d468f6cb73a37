<?php

declare(strict_types=1);

namespace App\Controller;

use App\Entity\User;
use Doctrine\ORM\EntityManagerInterface;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\ResponseHeaderBag;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\Routing\Annotation\Route;

/** Ways to respond, or not to respond. */
#[Route('/ways', methods: ['GET'])]
final class WaysController extends AbstractController
{
    #[Route('/exit')]
    public function exits(Request $request): never
    {
        // The manager holds an entity and the session a change. Other visitors must see neither.
        $request->getSession()->set('left', $request->query->get('name'));
        header('X-Left: ' . $request->query->get('name', ''));
        echo 'left by ', $this->getUser()?->getUserIdentifier() ?? 'nobody';
        exit();
    }

    #[Route('/dd')]
    public function dd(Request $request): never
    {
        dd($this->getUser()?->getUserIdentifier(), $request->query->all());
    }

    /** The page continues, and its toolbar shows the dumped data. */
    #[Route('/dump')]
    public function dump(Request $request): Response
    {
        dump($request->query->all());

        return new Response("<html><body>dumped</body></html>\n");
    }

    #[Route('/var_dump')]
    public function varDump(Request $request): Response
    {
        ob_start();
        var_dump($request->query->all());

        return new Response(ob_get_clean());
    }

    #[Route('/boom')]
    public function boom(): Response
    {
        throw new \RuntimeException('This page always fails.');
    }

    /** Doctrine closes the manager after such an error. */
    #[Route('/closed')]
    public function closed(EntityManagerInterface $manager): Response
    {
        $user = new User($this->getUser()?->name ?? 'ann');
        $manager->persist($user);
        try {
            $manager->flush();
        } catch (\Doctrine\DBAL\Exception\UniqueConstraintViolationException) {
            return new Response($manager->isOpen() ? 'open' : 'closed');
        }

        return new Response('no such error', Response::HTTP_INTERNAL_SERVER_ERROR);
    }

    #[Route('/stream/{from<\d{1,2}>}')]
    public function countdown(int $from): Response
    {
        $name = $this->getUser()?->getUserIdentifier() ?? 'nobody';

        return new StreamedResponse(static function () use ($from, $name): void {
            for ($i = $from; $i > 0; $i--) {
                echo "$i for $name\n";
                ob_get_level() > 0 && ob_flush();
                flush();
            }
        }, headers: ['Content-Type' => 'text/plain; charset=UTF-8']);
    }

    #[Route('/file')]
    public function download(): Response
    {
        $response = new BinaryFileResponse(__FILE__, autoEtag: true);
        $response->headers->set('Content-Type', 'text/plain; charset=UTF-8');

        return $response->setContentDisposition(ResponseHeaderBag::DISPOSITION_ATTACHMENT, 'ways.txt');
    }

    /** Sends output before the response. */
    #[Route('/early')]
    public function early(): Response
    {
        echo "early\n";
        while (ob_get_level() > 0) {
            ob_end_flush();
        }
        flush();

        return new Response("late\n");
    }

    #[Route('/json')]
    public function asJson(Request $request): Response
    {
        $request->getSession()->set('asked', $asked = $request->getSession()->get('asked', 0) + 1);

        return $this->json([
            'asked' => $asked,
            'user' => $this->getUser()?->getUserIdentifier(),
            'locale' => $request->getLocale(),
            'left' => $request->getSession()->get('left'),
        ]);
    }
}
