<?php

declare(strict_types=1);

namespace App\Controller;

use Symfony\Component\Form\FormInterface;
use Symfony\Component\HttpFoundation\Response;

/** The method `renderForm()` of Symfony 5, which is `render()` in Symfony 7. */
trait RendersForms
{
    /** @param array<string, mixed> $parameters */
    private function renderWithForm(string $template, FormInterface $form, array $parameters): Response
    {
        $isWrong = $form->isSubmitted() && !$form->isValid();
        $response = new Response(status: $isWrong ? Response::HTTP_UNPROCESSABLE_ENTITY : Response::HTTP_OK);

        return $this->render($template, $parameters + ['form' => $form->createView()], $response);
    }
}
