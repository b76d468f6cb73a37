<?php

declare(strict_types=1);

namespace App\Controller;

use App\Form\MessageType;
use RuntimeException;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\ResponseHeaderBag;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\Routing\Annotation\Route;

final class PageController extends AbstractController
{
    #[Route('/', name: 'home', methods: ['GET'])]
    public function home(Request $request): Response
    {
        $session = $request->getSession();
        $visits = $session->get('visits', 0) + 1;
        $session->set('visits', $visits);

        return $this->render('home.html.twig', [
            'visits' => $visits,
            'name' => $session->get('name'),
        ]);
    }

    #[Route('/message', name: 'message', methods: ['GET', 'POST'])]
    public function message(Request $request): Response
    {
        $form = $this->createForm(MessageType::class);
        $form->handleRequest($request);
        if (!$form->isSubmitted() || !$form->isValid()) {
            // The status that `renderForm()` sets in Symfony 5, and `render()` with a form in
            // Symfony 7.
            $status = $form->isSubmitted() ? Response::HTTP_UNPROCESSABLE_ENTITY : Response::HTTP_OK;

            return $this->render('message.html.twig', ['form' => $form->createView()], new Response(status: $status));
        }

        $message = $form->getData();
        $picture = $form->get('picture')->getData();
        $request->getSession()->set('name', $message['name']);
        $this->addFlash('notice', "Thank you, {$message['name']}: " . mb_strlen($message['text']) . ' characters.');
        if ($picture !== null) {
            $this->addFlash('notice', sprintf(
                '%s: %d bytes, SHA-256 %s',
                $picture->getClientOriginalName(),
                $picture->getSize(),
                hash_file('sha256', $picture->getPathname()),
            ));
        }

        return $this->redirectToRoute('home', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/goodbye', name: 'goodbye', methods: ['POST'])]
    public function goodbye(Request $request): Response
    {
        $request->getSession()->invalidate();

        return $this->redirectToRoute('home', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/old/{page}', name: 'old', methods: ['GET'])]
    public function old(string $page): Response
    {
        return $this->redirectToRoute('home', ['from' => $page], Response::HTTP_MOVED_PERMANENTLY);
    }

    #[Route('/countdown/{from<\d{1,2}>}', name: 'countdown', methods: ['GET'])]
    public function countdown(int $from = 3): Response
    {
        return new StreamedResponse(static function () use ($from): void {
            for ($i = $from; $i > 0; $i--) {
                echo "$i\n";
                ob_get_level() > 0 && ob_flush();
                flush();
            }
            echo "liftoff\n";
        }, headers: ['Content-Type' => 'text/plain; charset=UTF-8']);
    }

    #[Route('/download', name: 'download', methods: ['GET'])]
    public function download(): Response
    {
        $response = new BinaryFileResponse(__FILE__, autoEtag: true);
        $response->headers->set('Content-Type', 'text/plain; charset=UTF-8');

        return $response->setContentDisposition(ResponseHeaderBag::DISPOSITION_ATTACHMENT, 'PageController.txt');
    }

    #[Route('/boom', name: 'boom', methods: ['GET'])]
    public function boom(): Response
    {
        throw new RuntimeException('This page always fails.');
    }
}
